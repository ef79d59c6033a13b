package main

import (
	"bytes"
	"strings"
	"testing"
)

// This file specifies what berth simulate --explain says about pods, by examples/explain.

// explainExample returns the output of berth simulate --explain for a pod of examples/explain.
func explainExample(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return simulate(t, append([]string{"../../examples/explain/dump.yaml", "--explain"}, args...)...)
}

// simulate returns the output of berth simulate.
func simulate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := simulateCommand()
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
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
		{"team/big", []string{"pod team/big is pending", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
			"2      NodeResourcesFit  Insufficient cpu                  n1: needs 6 cpu, has 3 available"}},
		{"team/small", []string{"pod team/small is placed on n1", "NodeResourcesBalancedAllocation", "  n1    454    300 (0)          86 (86)"}},
		{"team/held", []string{"pod team/held is gated: Scheduling is blocked due to non-empty scheduling gates: waiting for scheduling gates: [example.com/quota]"}},
		{"team/lost", []string{`3      VolumeRestrictions  persistentvolumeclaim "gone" not found`}},
		{"team/stored", []string{"pod team/stored is placed on n2", "1      VolumeBinding    node(s) didn't match PersistentVolume's node affinity"}},
	} {
		got, err := explainExample(t, c.pod)
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

// TestExplainSaysWhatNodeGroupsDo has a pod for which nodes are launching, one whose group had
// no room left for it, one that no group takes, and groups that have them launching, are full
// and back off. docs/why-a-pod-waits.md shows the same.
func TestExplainSaysWhatNodeGroupsDo(t *testing.T) {
	for _, c := range []struct {
		flag, name string
		want       []string
	}{
		{"--explain", "default/web-0", []string{
			"upcoming: a node of small, not registered yet, with room reserved for it; ordered 2026-01-01 00:03:03; expected 2026-01-01 00:04:06 (p50), late after 2026-01-01 00:04:09 (p90 of 2 launches)",
			"small  scaled up           small 2->4 at 2026-01-01 00:03:03 for 2 pod(s)",
			"large  not chosen          chosen by least-waste: 2 of small for 2 pod(s) (25 % of cpu and memory unused) instead of 1 of large for 3 pod(s) (44 % of cpu and memory unused)",
			"spot   can't be scaled up  in backoff after failed scale-up; until 2026-01-01 00:08:03: out of stock: no 3 instances of group spot",
			"tiny   doesn't fit         Insufficient cpu; Insufficient memory; needs 3 cpu, an empty node has 2;"}},
		{"--explain", "default/web-2", []string{
			"coming: a node of large,", "no launch of the node group has been observed, so its arrival can't be estimated; given up at 2026-01-01 00:18:03", "small  can't be scaled up  max node group size reached"}},
		{"--explain", "default/huge-0", []string{"no upcoming node has room for it", "needs 64 cpu, an empty node has 16"}},
		{"--explain-group", "small", []string{"2 ready, 2 launching", "can't grow: max node group size reached", "Launch time: p50 1m2.9s, p90 1m6.2s (last 2 launches)", "small (chosen)  2      2"}},
		{"--explain-group", "spot", []string{"in backoff until 2026-01-01 00:08:03 after a failure of class OutOfResources", "(a scale-up by 3 nodes)"}},
	} {
		got, err := simulate(t, "../../examples/explain/waiting.yaml", c.flag, c.name)
		if err != nil {
			t.Errorf("%s %s: %v", c.flag, c.name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s %s: got\n%s\nwant …%s…", c.flag, c.name, got, want)
			}
		}
	}
	if _, err := simulate(t, "../../examples/explain/waiting.yaml", "--explain-group", "smal"); err == nil || !strings.Contains(err.Error(), "--explain-group: node group smal not found; similar names are small") {
		t.Errorf("a group that isn't there: %v", err)
	}
	if got, err := simulate(t, "../../examples/explain/waiting.yaml", "--explain-group", "small", "-o", "json"); err != nil || !strings.Contains(got, `"launching": 2`) {
		t.Errorf("as JSON: %v\n%s", err, got)
	}
}

// TestExplainSaysWhyNodesStay has one for each of the usual reasons; docs/why-a-node-stays.md
// shows some in full.
func TestExplainSaysWhyNodesStay(t *testing.T) {
	for node, want := range map[string]string{
		"control-plane-0": "not in a node group (NotAutoscaled)",
		"batch-0001":      "cpu utilization 75 % > 50 % (--scale-down-utilization-threshold)",
		"db-0001":         "default/db-0 would lose its local volume wal (LocalStorage)",
		"edge-0001":       "default/relay-00002  nowhere: 0/12 nodes are available",
		"gpu-0001":        "lower the minimum size of node group gpu below 1",
		"web-0001":        "default/web-00002  web-0004",
		"web-0004":        "IsDestination",
	} {
		if got, err := simulate(t, "../../examples/explain/staying.yaml", "--explain-node", node); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v\n%s\nwant …%s…", node, err, got, want)
		}
	}
	if got, err := simulate(t, "../../examples/explain/staying.yaml", "--explain-nodes", "-o", "json"); err != nil || !strings.Contains(got, `"kind": "NodeList"`) || !strings.Contains(got, `"name": "db-0001"`) {
		t.Errorf("all as JSON: %v\n%s", err, got)
	}
	if _, err := simulate(t, "../../examples/explain/staying.yaml", "--explain-node", "web"); err == nil || !strings.Contains(err.Error(), `--explain-node: node web not found; similar names are web-0001`) {
		t.Errorf("a node that isn't there: %v", err)
	}
}

func TestExplainAsJSON(t *testing.T) {
	got, err := explainExample(t, "team/big", "-o", "json")
	for _, want := range []string{`"apiVersion": "berth.dev/v1alpha1"`, `"kind": "PodDetail"`, `"needed": "6"`, `"at": "2026-01-01T00:`} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("got %v\n%s\nwant the object of the API, with %s", err, got, want)
		}
	}
}

func TestExplainRefusesAPodThatIsntThere(t *testing.T) {
	for _, c := range []struct{ pod, want string }{
		{"big", "it must be a pod as namespace/name"},
		{"team/nobody", "pod team/nobody not found"},
	} {
		if _, err := explainExample(t, c.pod); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--explain %s: got %v, want …%s…", c.pod, err, c.want)
		}
	}
}
