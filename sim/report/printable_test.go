package report

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPrintable: what a terminal would obey is shown as it is written, and everything else stays.
func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"":                           "",
		"pod web-0\n\tzone é 箱 …":    "pod web-0\n\tzone é 箱 …",
		"\x1b[2J\x1b]0;title\a":      `\x1b[2J\x1b]0;title\a`,
		"one\rtwo\b\x00\x7f":         `one\rtwo\b\x00\x7f`,
		"\u009b31m":                  `\u009b31m`, // ESC [ in one character
		"\x9b31m":                    `\x9b31m`,   // and in one byte
		"a\u202eb\u2066":             `a\u202eb\u2066`,
		"half a letter \xe7\xae":     `half a letter \xe7\xae`,
		"a replacement \ufffd stays": "a replacement \ufffd stays",
	} {
		if got := Printable(s); got != want {
			t.Errorf("%q is printed as %q, want %q", s, got, want)
		}
	}
	var out strings.Builder
	if n, err := fmt.Fprintf(PrintableWriter(&out), "a\x1b%s", "箱"); n != 5 || err != nil || out.String() != `a\x1b箱` {
		t.Errorf("%d bytes were written as %q (%v)", n, out.String(), err)
	}
}

// FuzzPrintable: whatever the text, nothing unprintable is left, and a printable text stays as it is.
func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[2J\x9b\u202e\xff\xfe\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return Unprintable(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q is printed as %q", s, got)
		}
		if Printable(got) != got {
			t.Errorf("%q changes when it is printed again", got)
		}
	})
}
