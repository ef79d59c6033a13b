package pricelist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxValue is how long one value of a list may be, in bytes: a product, the terms of one, or a string.
// Everything above is read piece by piece.
const maxValue = 16 << 20

// errEnough ends the reading of a list of which the rest isn't needed.
var errEnough = errors.New("enough was read")

// stream reads JSON of any size in memory for one value.
type stream struct {
	dec *json.Decoder
	in  *bounded
}

func newStream(r io.Reader) *stream {
	in := &bounded{r: r, left: maxValue}
	return &stream{json.NewDecoder(in), in}
}

// bounded fails when more bytes are read for one value than it may have.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("a value has more than %d bytes", maxValue)
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}

// token returns the next token.
func (s *stream) token() (json.Token, error) {
	s.in.left = maxValue
	t, err := s.dec.Token()
	return t, s.located(err)
}

// decode reads the next value.
func (s *stream) decode(into any) error {
	s.in.left = maxValue
	return s.located(s.dec.Decode(into))
}

// located says where in the text an error is. The end of the text is one: it is in the midst of a value.
func (s *stream) located(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("at byte %d: %w", s.dec.InputOffset(), err)
}

// object calls member for each key of the object that comes next; member reads the value.
func (s *stream) object(member func(key string) error) error {
	if err := s.delim('{', "an object"); err != nil {
		return err
	}
	for s.dec.More() {
		key, err := s.token()
		if err != nil {
			return err
		}
		if err := member(key.(string)); err != nil { // a decoder accepts no other keys
			return err
		}
	}
	_, err := s.token()
	return err
}

// array calls element for each element of the array that comes next; element reads it.
func (s *stream) array(element func() error) error {
	if err := s.delim('[', "an array"); err != nil {
		return err
	}
	for s.dec.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := s.token()
	return err
}

// delim reads the delimiter that a value of a kind begins with.
func (s *stream) delim(want json.Delim, kind string) error {
	t, err := s.token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("at byte %d: there is %v, want %s", s.dec.InputOffset(), t, kind)
	}
	return nil
}

// skip reads over the next value, whatever its size.
func (s *stream) skip() error {
	for depth := 0; ; {
		t, err := s.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// unread is a value that nobody reads; decoding it costs less than skipping it token by token.
type unread struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (unread) UnmarshalJSON([]byte) error { return nil }
