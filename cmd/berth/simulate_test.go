package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimulateSaysWhatWasStillToCome plays a workload that comes after the run
// is over.
func TestSimulateSaysWhatWasStillToCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "late.yaml")
	text := `{"apiVersion": "berth.dev/v1alpha1", "kind": "Scenario", "spec": {"workload": [
		{"name": "w", "count": 3, "arrive": {"after": "49h"}, "template": {"spec": {"containers": [{"name": "c"}]}}}]}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, told bytes.Buffer
	cmd := simulateCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&told)
	cmd.SetArgs([]string{path})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "late: the run ended after 48h0m0s, and 3 pods were still to come"; !strings.Contains(told.String(), want) {
		t.Errorf("got %q, want …%s…", told.String(), want)
	}
}
