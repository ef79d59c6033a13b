package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTheTableNamesWhatTookLongest: packages where a stage has several, otherwise tests.
func TestTheTableNamesWhatTookLongest(t *testing.T) {
	of := func(test string, took time.Duration) duration { return duration{module + "/" + test, "", took} }
	got := table([]outcome{
		{stage: stage{name: "unit", what: "unit tests"}, wall: 61 * time.Second, cpu: 90 * time.Second,
			durations: []*results{{packages: []duration{of("core", 3*time.Second), of("sim", 9*time.Second), of("drive", time.Millisecond)}}}},
		{stage: stage{name: "soak", what: "worlds"}, wall: 4 * time.Second, cpu: 8 * time.Second,
			durations: []*results{{packages: []duration{of("sim/soak", 4*time.Second)}, tests: []duration{{module + "/sim/soak", "TestSoak", 3 * time.Second}}}}},
	})
	want := `| stage | wall time | CPU time | longest |
|---|---|---|---|
| unit: unit tests | 1m1s | 1m30s | sim 9s, core 3s |
| soak: worlds | 4s | 8s | TestSoak 3s |
| all | 1m5s | 1m38s | |
`
	if got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
}

// TestTheTableReplacesTheOneBefore, in a page like CONTRIBUTING.md, which has a place for it.
func TestTheTableReplacesTheOneBefore(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, contributing))
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first\n", "second\n"} {
		if err := document(page, test, text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "-->\nsecond\n<!-- end of times -->") || strings.Contains(string(got), "first\n") {
		t.Errorf("the page is\n%s", got)
	}
	if err := document(page, "sometimes", ""); err == nil {
		t.Error("a tier without a place in the page has been written")
	}
}
