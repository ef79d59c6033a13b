package main

import (
	"os"
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/testkit"
)

// TestDocumentsShowWhatIsPrinted runs the commands that a document shows, each on the line after
// a fence as "$ berth simulate ARGUMENTS", with paths from the repository's root, and compares
// what they print with the rest of the block; -rewrite writes it there.
func TestDocumentsShowWhatIsPrinted(t *testing.T) {
	const fence, prompt = "```", "$ berth simulate "
	for _, path := range []string{"../../docs/why-a-node-stays.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		commands := 0
		for lines := strings.Split(string(text), "\n"); len(lines) > 0; lines = lines[1:] {
			want = append(want, lines[0])
			if lines[0] != fence || len(lines) < 2 || !strings.HasPrefix(lines[1], prompt) {
				continue
			}
			args := strings.Fields(strings.TrimPrefix(lines[1], prompt))
			args[0] = "../../" + args[0]
			out, err := simulate(t, args...)
			if err != nil {
				t.Errorf("%s: %s: %v", path, lines[1], err)
			}
			want = append(want, lines[1], strings.TrimRight(out, "\n"), fence)
			for lines = lines[2:]; lines[0] != fence; lines = lines[1:] { //nolint:revive // the old output
			}
			commands++
		}
		if commands == 0 {
			t.Errorf("%s shows no command", path)
		}
		testkit.Generated(t, path, strings.Join(want, "\n"), "go test ./cmd/berth -run DocumentsShow -rewrite", *rewrite)
	}
}
