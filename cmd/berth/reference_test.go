package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/internal/test/testkit"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reference/flags.md")

// TestFlagReference compares docs/reference/flags.md with the flags of the commands.
func TestFlagReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Flags\n\nGenerated from the code: `go test ./cmd/berth -rewrite`.\n")
	for _, path := range []string{"run", "status", "top", "explain", "simulate", "plan", "provider simulated", "provider check"} {
		cmd, _, err := root().Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## `berth %s`\n\n| flag | default | meaning |\n|---|---|---|\n", path)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				fmt.Fprintf(&b, "| `--%s` | `%s` | %s |\n", f.Name, f.DefValue, f.Usage)
			}
		})
	}
	b.WriteString(upstreamReference(t))
	path := filepath.Join("..", "..", "docs", "reference", "flags.md")
	testkit.Generated(t, path, b.String(), "go test ./cmd/berth -rewrite", *rewrite)
}
