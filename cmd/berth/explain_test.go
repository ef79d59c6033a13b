package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestExplain reads what people see of pods of examples/explain.
func TestExplain(t *testing.T) {
	explain := func(args ...string) (string, error) {
		var out, told bytes.Buffer
		cmd := simulateCommand()
		cmd.SetOut(&out)
		cmd.SetErr(&told)
		cmd.SetArgs(append([]string{"../../examples/explain/dump.yaml", "--explain"}, args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	for pod, want := range map[string][]string{
		"team/big": {"pod team/big waits", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
			"2      NodeResourcesFit  Insufficient cpu                  n1 needs 6 of cpu, 3 is there"},
		"team/small":  {"pod team/small is placed on n1", "NodeResourcesBalancedAllocation", "  n1    454    300 (0)          86 (86)"},
		"team/held":   {"pod team/held is held: Scheduling is blocked due to non-empty scheduling gates: waiting for scheduling gates: [example.com/quota]"},
		"team/lost":   {`3      VolumeRestrictions  persistentvolumeclaim "gone" not found`},
		"team/stored": {"pod team/stored is placed on n2", "1      VolumeBinding    node(s) didn't find available persistent volumes to bind"},
	} {
		got, err := explain(pod)
		if err != nil {
			t.Errorf("%s: %v", pod, err)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: got\n%s\nwant …%s…", pod, got, w)
			}
		}
	}
	if got, err := explain("team/big", "-o", "json"); err != nil || !strings.Contains(got, `"needed": 6000`) {
		t.Errorf("as JSON: %v\n%s", err, got)
	}
	for arg, want := range map[string]string{"big": "write a pod as namespace/name", "team/nobody": "no pod team/nobody was there"} {
		if _, err := explain(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--explain %s: %v, want …%s…", arg, err, want)
		}
	}
}
