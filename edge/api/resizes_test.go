package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// resizing has two pods in two namespaces that their node can't resize.
const resizing = `apiVersion: berth.dev/v1alpha1
kind: Scenario
spec:
  nodeGroups: [{name: g, min: 1, initial: 1, max: 1, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}}]
  workload:
  - {name: web, namespace: team-a, kind: ReplicaSet, count: 1, resize: {after: {min: 1m, max: 1m}, requests: {cpu: "3"}}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}}
  - {name: web, namespace: team-b, kind: ReplicaSet, count: 1, resize: {after: {min: 1m, max: 1m}, requests: {cpu: "9"}}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}}
  end: {at: 20m, quiet: 5m}
`

// TestResizesOfOthersAreNotNamed: somebody who may read the pods of one namespace gets the counts of all, and the pods of that.
func TestResizesOfOthersAreNotNamed(t *testing.T) {
	run, err := scenario.Parse("resizing.yaml", []byte(resizing))
	if err != nil {
		t.Fatal(err)
	}
	x := &example{history: observe.NewHistory(1 << 10), series: api.NewSeries()}
	if x.world, err = sim.New(run, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := x.options()
	rights := &granting{may: map[string][]string{"admin": {""}, "b": {"team-b"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	for viewer, pods := range map[string]string{"admin": "team-a team-b", "b": "team-b"} {
		answer := v1alpha1.Overview{}
		_, body := get(a, "overview", rights.as(viewer))
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Resizes == nil {
			t.Fatalf("%s: %v %s", viewer, err, body)
		}
		var got []string
		for _, p := range answer.Resizes.Pods {
			namespace, _, _ := strings.Cut(p.Pod, "/")
			got = append(got, namespace)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != pods || answer.Resizes.Deferred != 1 || answer.Resizes.Infeasible != 1 {
			t.Errorf("%s is told of %d deferred and %d infeasible resizes, of the namespaces %q; want one each, and %q", viewer, answer.Resizes.Deferred, answer.Resizes.Infeasible, got, pods)
		}
	}
}
