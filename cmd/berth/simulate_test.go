package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimulateSaysWhatWasStillToCome plays a workload whose pods come after the end of the
// run.
func TestSimulateSaysWhatWasStillToCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "late.yaml")
	text := `{"apiVersion": "berth.dev/v1alpha1", "kind": "Scenario", "spec": {"workload": [
		{"name": "w", "count": 3, "arrive": {"after": "49h"}, "template": {"spec": {"containers": [{"name": "c"}]}}}]}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := simulateCommand()
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs([]string{path})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "late: the run ended after 48h0m0s, before 3 pod(s) had arrived"; !strings.Contains(stderr.String(), want) {
		t.Errorf("got %q, want …%s…", stderr.String(), want)
	}
}
