package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// OpenbTrace returns the folder of the production trace, which isn't part of the repository. It
// lies in a folder "shared" beside the repository. Without that folder the test is skipped; a
// shared folder without the trace is a failure. root is the relative path of the repository's
// root.
func OpenbTrace(t testing.TB, root string) string {
	t.Helper()
	shared := filepath.Join(root, "..", "shared")
	if _, err := os.Stat(shared); err != nil {
		t.Skipf("needs a production trace, %s: %v", NotInRepository, err)
	}
	dir := filepath.Join(shared, "data", "openb")
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("%s is there and has no trace: %v", shared, err)
	}
	return dir
}
