package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// OpenbTrace returns the folder of the production trace, which isn't part of the repository
// and may lie beside it. Without the trace the test is skipped, but fails in CI, which has
// it. root is the relative path of the repository's root.
func OpenbTrace(t testing.TB, root string) string {
	t.Helper()
	dir := filepath.Join(root, "..", "shared", "data", "openb")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI has the trace, but: %v", err)
		}
		t.Skipf("needs %s, which is not part of the repository", dir)
	}
	return dir
}
