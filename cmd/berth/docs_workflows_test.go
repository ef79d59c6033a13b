package main

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestWorkflowsCallWhatIsThere: what a workflow runs by make is a target that takes the variables.
// Workflows themselves are linted by
//
//	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
func TestWorkflowsCallWhatIsThere(t *testing.T) {
	t.Chdir(repository)
	paths, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	calls := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct{ Run string }
			}
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for name, job := range workflow.Jobs {
			for _, step := range job.Steps {
				all, err := callsOf(step.Run)
				if err != nil {
					t.Errorf("%s: job %s: %s: %v", path, name, step.Run, err)
				}
				for _, c := range all {
					if c.args[0] != "make" {
						continue
					}
					calls++
					if err := ruleOfMake(c, true); err != nil {
						t.Errorf("%s: job %s: %v: %v", path, name, c.args, err)
					}
				}
			}
		}
	}
	if calls == 0 {
		t.Error("no workflow calls make")
	}
}
