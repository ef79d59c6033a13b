package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// This file tells where the minutes of a tier went. CONTRIBUTING.md has the tables.

// slowest is how many packages or tests a stage names in the table.
const slowest = 4

// table returns a table of stages in Markdown: how long each took, on the clock and of the
// processors, and which of its packages, or tests if it has one package, took longest.
func table(stages []outcome) string {
	var b strings.Builder
	b.WriteString("| stage | wall time | CPU time | longest |\n|---|---|---|---|\n")
	var wall, cpu time.Duration
	for i := range stages {
		o := &stages[i]
		wall, cpu = wall+o.wall, cpu+o.cpu
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s |\n", o.name, o.what, round(o.wall), round(o.cpu), longest(o))
	}
	fmt.Fprintf(&b, "| all | %s | %s | |\n", round(wall), round(cpu))
	return b.String()
}

// longest names what took longest in a stage, of all that took at least a second. Where a command ran
// several packages at once, packages are named; a test's time there says little.
func longest(o *outcome) string {
	var all []duration
	for _, seen := range o.durations {
		if len(seen.packages) == 1 {
			all = append(all, seen.tests...)
		} else {
			all = append(all, seen.packages...)
		}
	}
	slices.SortStableFunc(all, func(a, b duration) int { return cmp.Compare(b.took, a.took) })
	var words []string
	for _, d := range all[:min(slowest, len(all))] {
		if d.took < time.Second {
			break
		}
		name := d.test
		if name == "" {
			name = strings.TrimPrefix(d.pkg, module+"/")
		}
		words = append(words, fmt.Sprintf("%s %s", name, round(d.took)))
	}
	return strings.Join(words, ", ")
}

// contributing is the page that has the tables.
const contributing = "CONTRIBUTING.md"

// document puts the table of a tier into a page, in place of the one that is there. It is an error
// when the page has no such place: the table would be lost unnoticed.
func document(page, tier, table string) error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- times of make %s: go run ./hack/tiers -document %s -->\n", tier, tier), "<!-- end of times -->\n"
	before, rest, ok := strings.Cut(string(raw), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the times of make %s, which begins with %s", page, tier, begin)
	}
	return os.WriteFile(page, []byte(before+begin+table+end+after), 0o644)
}
