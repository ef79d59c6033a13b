package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reference/flags.md")

// TestFlagReference keeps docs/reference/flags.md what the code says.
func TestFlagReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Flags\n\nGenerated from the code: `go test ./cmd/berth -rewrite`.\n")
	for _, cmd := range []*cobra.Command{runCommand(), explainCommand(), simulateCommand()} {
		fmt.Fprintf(&b, "\n## `berth %s`\n\n| flag | default | meaning |\n|---|---|---|\n", cmd.Name())
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			fmt.Fprintf(&b, "| `--%s` | `%s` | %s |\n", f.Name, f.DefValue, f.Usage)
		})
	}
	path := filepath.Join("..", "..", "docs", "reference", "flags.md")
	if *rewrite {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is not what the code says; run go test ./cmd/berth -rewrite", path)
	}
}
