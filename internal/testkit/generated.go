package testkit

import (
	"os"
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
