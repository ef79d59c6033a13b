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
	sections := newRunFlags().register(pflag.NewFlagSet("run", pflag.ContinueOnError))
	b.WriteString("\n## `berth run`\n")
	for _, name := range sections.Order {
		fmt.Fprintf(&b, "\n### %s%s flags\n\n%s", strings.ToUpper(name[:1]), name[1:], flagTable(sections.FlagSets[name]))
	}
	for _, path := range []string{"status", "top", "explain", "dump", "simulate", "plan", "provider simulated", "provider check", "prices import", "migrate cluster-autoscaler"} {
		cmd, _, err := root().Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## `berth %s`\n\n%s", path, flagTable(cmd.Flags()))
	}
	b.WriteString(upstreamReference(t))
	path := filepath.Join("..", "..", "docs", "reference", "flags.md")
	testkit.Generated(t, path, b.String(), "go test ./cmd/berth -rewrite", *rewrite)
}

// flagTable returns the flags that aren't hidden, in the order in which they were added.
func flagTable(fs *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			fmt.Fprintf(&b, "| `--%s` | `%s` | %s |\n", f.Name, f.DefValue, strings.ReplaceAll(strings.TrimSpace(f.Usage), "\n", " "))
		}
	})
	return b.String()
}
