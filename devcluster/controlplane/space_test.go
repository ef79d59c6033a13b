package controlplane

import (
	"errors"
	"strings"
	"testing"
)

// TestTooLittleSpaceIsSaid asks for more bytes than any disk has, and for none.
func TestTooLittleSpaceIsSaid(t *testing.T) {
	folder := t.TempDir()
	err := checkSpace(folder, 1<<62)
	if !errors.Is(err, errNoSpace) || !strings.Contains(err.Error(), folder+" has ") || !strings.Contains(err.Error(), "name another folder with TMPDIR") {
		t.Errorf("more than there is: %v", err)
	}
	if err := checkSpace(folder, 0); err != nil {
		t.Errorf("nothing is needed, and %v", err)
	}
}
