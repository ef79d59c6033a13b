package framework

import "encoding/binary"

// Signature collects what a rule reads of a pod. Every piece carries its
// length, so different sequences never give the same bytes.
type Signature struct{ buf []byte }

// Reset empties the signature and keeps its memory.
func (s *Signature) Reset() { s.buf = s.buf[:0] }

// Bytes returns the signature. They are valid until the next call.
func (s *Signature) Bytes() []byte { return s.buf }

// Str adds a string.
func (s *Signature) Str(v string) {
	s.buf = binary.AppendUvarint(s.buf, uint64(len(v)))
	s.buf = append(s.buf, v...)
}

// Int adds a number.
func (s *Signature) Int(v int64) { s.buf = binary.AppendVarint(s.buf, v) }

// Bool adds a truth value.
func (s *Signature) Bool(v bool) {
	if v {
		s.buf = append(s.buf, 1)
		return
	}
	s.buf = append(s.buf, 0)
}

// OptStr adds a string that may be absent.
func (s *Signature) OptStr(v string, present bool) {
	s.Bool(present)
	if present {
		s.Str(v)
	}
}
