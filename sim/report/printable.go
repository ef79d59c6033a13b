package report

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file keeps names and messages of others from driving the reader's terminal: a pod's condition or a provider's
// error may hold escape sequences that clear the screen, change the title, or hide what follows.

// Unprintable reports whether a rune isn't to reach a terminal: control characters, and the marks by which text is
// shown in another order than it is written.
func Unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Printable returns a text with unprintable runes, and bytes that are no UTF-8, as Go writes them: \x1b. Line breaks and
// tabs stay.
func Printable(s string) string {
	clean := func(r rune) bool { return r == utf8.RuneError || Unprintable(r) && r != '\n' && r != '\t' }
	if strings.IndexFunc(s, clean) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if size > 1 && r == utf8.RuneError || !clean(r) { // U+FFFD itself is as good as any letter
			b.WriteString(s[:size])
		} else {
			b.WriteString(strings.Trim(strconv.QuoteToASCII(s[:size]), `"`))
		}
		s = s[size:]
	}
	return b.String()
}

// PrintableWriter returns a writer that writes text to out as Printable returns it. It is for text without colours.
func PrintableWriter(out io.Writer) io.Writer { return printable{out} }

type printable struct{ out io.Writer }

// Write implements io.Writer. Whoever writes text writes whole runes: fmt, and tabwriter by cells.
func (p printable) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.out, Printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
