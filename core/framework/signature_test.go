package framework_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/framework"
)

func signed(write func(s *framework.Signature)) []byte {
	var s framework.Signature
	write(&s)
	return s.Bytes()
}

func TestSignaturesTellValuesApart(t *testing.T) {
	strs := func(list ...string) func(*framework.Signature) {
		return func(s *framework.Signature) {
			for _, v := range list {
				s.Str(v)
			}
		}
	}
	opt := func(v string, present bool) func(*framework.Signature) {
		return func(s *framework.Signature) { s.OptStr(v, present) }
	}
	num := func(v int64) func(*framework.Signature) { return func(s *framework.Signature) { s.Int(v) } }
	truth := func(v bool) func(*framework.Signature) { return func(s *framework.Signature) { s.Bool(v) } }
	long := string(bytes.Repeat([]byte("x"), 300)) // its length takes two bytes
	for _, c := range []struct {
		name string
		a, b func(*framework.Signature)
		same bool
	}{
		{"where one string ends and the next begins", strs("a", "bc"), strs("ab", "c"), false},
		{"an empty string before or after", strs("", "a"), strs("a", ""), false},
		{"long strings that differ in length only", strs(long), strs(long + "x"), false},
		{"equal strings", strs("a", "bc", long), strs("a", "bc", long), true},
		{"an absent string and an empty one", opt("", false), opt("", true), false},
		{"an absent string, whatever it is", opt("a", false), opt("b", false), true},
		{"present strings", opt("a", true), opt("b", true), false},
		{"the sign of a number", num(1), num(-1), false},
		{"numbers of one and of two bytes", num(1), num(129), false},
		{"true and false", truth(true), truth(false), false},
	} {
		if same := bytes.Equal(signed(c.a), signed(c.b)); same != c.same {
			t.Errorf("%s: % x and % x are equal: %v, want %v", c.name, signed(c.a), signed(c.b), same, c.same)
		}
	}
}

func TestSignatureAfterResetHoldsOnlyWhatCameLater(t *testing.T) {
	var s framework.Signature
	s.Str("a pod of long ago")
	s.Reset()
	s.Int(7)
	if want := signed(func(s *framework.Signature) { s.Int(7) }); !bytes.Equal(s.Bytes(), want) {
		t.Errorf("after Reset and Int(7) the signature is % x, want % x", s.Bytes(), want)
	}
}

// Values are written by the same calls, as the pods of one profile are: lists with
// their length first, optional strings with whether they are there.
func TestPropertySignaturesAreEqualIffTheirValuesAre(t *testing.T) {
	type value struct {
		list  []string
		num   int64
		truth bool
		opt   *string
	}
	text := rapid.SampledFrom([]string{"", "a", "b", "ab", "\x00", "\x01a", "\x02"})
	draw := func(t *rapid.T) (out []value) {
		for range 3 {
			v := value{
				list: rapid.SliceOfN(text, 0, 3).Draw(t, "list"), truth: rapid.Bool().Draw(t, "truth"),
				num: rapid.SampledFrom([]int64{0, 1, -1, 2, 64, 300}).Draw(t, "num"),
			}
			if rapid.Bool().Draw(t, "present") {
				s := text.Draw(t, "opt")
				v.opt = &s
			}
			out = append(out, v)
		}
		return out
	}
	write := func(values []value) []byte {
		return signed(func(s *framework.Signature) {
			for _, v := range values {
				s.Int(int64(len(v.list)))
				for _, x := range v.list {
					s.Str(x)
				}
				s.Int(v.num)
				s.Bool(v.truth)
				if v.opt == nil {
					s.OptStr("", false)
				} else {
					s.OptStr(*v.opt, true)
				}
			}
		})
	}
	equal := func(a, b value) bool {
		return slices.Equal(a.list, b.list) && a.num == b.num && a.truth == b.truth &&
			(a.opt == nil) == (b.opt == nil) && (a.opt == nil || *a.opt == *b.opt)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t)
		b := slices.Clone(a)
		if rapid.Bool().Draw(t, "different") {
			other := draw(t)
			for i := range b {
				if rapid.Bool().Draw(t, "replaced") {
					b[i] = other[i]
				}
			}
		}
		same := bytes.Equal(write(a), write(b))
		if want := slices.EqualFunc(a, b, equal); same != want {
			t.Fatalf("values %+v and %+v: signatures equal: %v, want %v", a, b, same, want)
		}
	})
}
