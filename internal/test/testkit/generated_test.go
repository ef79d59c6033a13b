package testkit_test

import (
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestSplice puts a part between the marks and leaves all else alone.
func TestSplice(t *testing.T) {
	const begin, end = "<!-- x -->\n", "<!-- end -->\n"
	got, err := testkit.Splice("a\n"+end+begin+"old\n"+end+"\nz\n"+end, begin, end, "new\n")
	if want := "a\n" + end + begin + "new\n" + end + "\nz\n" + end; err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	for _, bad := range []string{"", "a\n" + begin, end + "\n" + begin} {
		if _, err := testkit.Splice(bad, begin, end, "new"); err == nil || !strings.Contains(err.Error(), `no lines "<!-- x -->" and "<!-- end -->"`) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}
