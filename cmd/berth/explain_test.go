package main

import (
	"bytes"
	"strings"
	"testing"
)

// This file specifies what berth simulate --explain says of pods, by examples/explain.

// explain returns the output of berth simulate --explain for a pod of examples/explain.
func explain(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := simulateCommand()
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"../../examples/explain/dump.yaml", "--explain"}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return stdout.String(), err
}

// TestExplain has one pod for each state that a pod can be in, and for rules that read
// other objects.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		pod  string
		want []string
	}{
		{"team/big", []string{"pod team/big waits", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
			"2      NodeResourcesFit  Insufficient cpu                  n1 needs 6 of cpu, 3 is there"}},
		{"team/small", []string{"pod team/small is placed on n1", "NodeResourcesBalancedAllocation", "  n1    454    300 (0)          86 (86)"}},
		{"team/held", []string{"pod team/held is held: Scheduling is blocked due to non-empty scheduling gates: waiting for scheduling gates: [example.com/quota]"}},
		{"team/lost", []string{`3      VolumeRestrictions  persistentvolumeclaim "gone" not found`}},
		{"team/stored", []string{"pod team/stored is placed on n2", "1      VolumeBinding    node(s) didn't find available persistent volumes to bind"}},
	} {
		got, err := explain(t, c.pod)
		if err != nil {
			t.Errorf("%s: %v", c.pod, err)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got\n%s\nwant …%s…", c.pod, got, want)
			}
		}
	}
}

func TestExplainAsJSON(t *testing.T) {
	if got, err := explain(t, "team/big", "-o", "json"); err != nil || !strings.Contains(got, `"needed": 6000`) {
		t.Errorf("got %v\n%s\nwant what the pod needs of cpu, in thousandths", err, got)
	}
}

func TestExplainRefusesAPodThatIsntThere(t *testing.T) {
	for _, c := range []struct{ pod, want string }{
		{"big", "write a pod as namespace/name"},
		{"team/nobody", "no pod team/nobody was there"},
	} {
		if _, err := explain(t, c.pod); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--explain %s: got %v, want …%s…", c.pod, err, c.want)
		}
	}
}
