package testkit

import (
	"os"
	"testing"
)

// Generated checks that a file made from the code has the text that the code
// gives it now, or writes it; by is the command that does.
func Generated(t testing.TB, path, text, by string, rewrite bool) {
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
		t.Errorf("%s is not what the code says; run %s", path, by)
	}
}
