package framework

import "encoding/binary"

// Signature collects what a rule reads of a pod, as bytes that are compared and
// hashed.
//
// Two signatures written by the same sequence of calls (Str, Int, …, each with
// whatever value) are equal iff all values are: every piece is self-delimiting, a
// string carries its length, so ("a", "bc") differs from ("ab", "c"). Pieces don't
// carry their kind. So what a plugin writes next may depend only on what it has
// written before: a list is preceded by its length (Int), an optional part by whether
// it is there (Bool, OptStr).
type Signature struct{ buf []byte }

// Reset empties the signature and keeps its memory.
func (s *Signature) Reset() { s.buf = s.buf[:0] }

// Bytes returns the signature. They are valid until the next call of Reset or of a
// method that adds to it.
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

// OptStr adds a string that may be absent: an absent one differs from "".
func (s *Signature) OptStr(v string, present bool) {
	s.Bool(present)
	if present {
		s.Str(v)
	}
}
