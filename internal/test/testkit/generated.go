package testkit

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Generated checks that a file which is generated from the code has the text that the code
// generates now. With rewrite it writes the file first; command is the one that does so.
func Generated(t testing.TB, path, text, command string, rewrite bool) {
	t.Helper()
	if rewrite {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text {
		t.Errorf("%s differs from what the code generates; run %s", path, command)
	}
}

// Splice returns a text with a part in place of what is between two marks, which stay. The end is
// the first after the begin.
func Splice(text, begin, end, part string) (string, error) {
	before, rest, begins := strings.Cut(text, begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return "", fmt.Errorf("there are no lines %q and %q, between which a generated part goes", strings.TrimSuffix(begin, "\n"), strings.TrimSuffix(end, "\n"))
	}
	return before + begin + part + end + after, nil
}
