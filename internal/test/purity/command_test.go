package purity

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// maxCommandLines is how many lines cmd/berth may have: it is flags and wiring, and what it wires has
// packages of its own.
const maxCommandLines = 2000

// TestTheCommandIsFlagsAndWiring counts the lines of cmd/berth, tests left out.
func TestTheCommandIsFlagsAndWiring(t *testing.T) {
	lines := 0
	sources(t, func(file, pkg string, _ []string) {
		if pkg != "cmd/berth" {
			return
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	})
	if lines == 0 || lines > maxCommandLines {
		t.Errorf("cmd/berth has %d lines, want at most %d: move what is no flag and no wiring to a package", lines, maxCommandLines)
	}
}
