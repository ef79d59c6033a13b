package simulatedgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// FuzzFile reads any text as a file of node groups. What is accepted makes nodes that the core
// can read.
func FuzzFile(f *testing.F) {
	raw, err := os.ReadFile("../../examples/demo/groups.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	const head = "apiVersion: berth.dev/v1alpha1\nkind: SimulatedNodeGroups\n"
	for _, text := range []string{
		"groups:\n- {name: a, max: 3, template: {allocatable: {cpu: 4}}}\n- {name: a, max: 3}\n",
		"groups: [{name: a, min: 4, max: 3, pricePerHour: -1, launchDelay: {min: 2s, max: 1s}, failureRate: 2, options: {zeroOrMaxNodeScaling: true}, template: {allocatable: {cpu: 9e99}}}]\n",
		"groups: [{name: a, max: 1, template: {labels: {a: b}, taints: [{key: k, effect: NoSchedule}], images: [{names: [x], sizeBytes: -1}], allocatable: {cpu: 1m, pods: 0}}}]\n",
		"groups: [{name: a, max: 1, template: {allocatable: {cpu: \"4e999999999\", memory: \"1e-999999999\", pods: \"9223372036854775808e99999999\"}}}]\n",
		"groups: [null]\n", "groups: {}\n",
	} {
		f.Add([]byte(head + text))
	}
	path := filepath.Join(f.TempDir(), "groups.yaml")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := simulatedgroup.Load(path)
		if err != nil {
			return
		}
		for i := range file.Groups {
			g := &file.Groups[i]
			group := g.Group()
			if err := group.Validate(); err != nil {
				t.Errorf("it is accepted with group %q, which is none: %v", g.Name, err)
			}
			cluster.NewSchema().ParseNode(g.NewNode("n"), g.Name)
			if d := g.LaunchDelay.Between(0.5); d < 0 {
				t.Errorf("group %q launches in %s", g.Name, d)
			}
		}
	})
}
