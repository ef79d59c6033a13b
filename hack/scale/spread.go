package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// This file measures many apps each of which is spread by itself: every pod that waits looks at
// other nodes, and every one has places on nodes that are coming.

// The apps are three for ten nodes, up to so many nodes: the work grows with the product of both.
const (
	spreadAppPods  = 10
	spreadMaxNodes = 5000
)

// spreadApps returns how many apps there are for a task's nodes.
func spreadApps(t task) int { return max(1, 3*t.Nodes/10) }

// spreadScenario returns apps of ten pods, all of which arrive at once on an empty cluster of nine
// groups in three zones. Each app has its own request, hard spread and required node affinity.
func spreadScenario(apps int) string {
	var out strings.Builder
	out.WriteString("apiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: spread}\nspec:\n  seed: 1\n  nodeGroups:\n")
	sizes := []string{"small", "medium", "large"}
	for i, size := range sizes {
		for _, zone := range "abc" {
			fmt.Fprintf(&out, `  - name: %[1]s-%[2]c
    max: 10000
    pricePerHour: %[3]d
    launchDelay: {min: 5s, max: 15s}
    startup: {min: 1s, max: 3s}
    template:
      labels: {topology.kubernetes.io/zone: %[2]c, size: %[1]s}
      allocatable: {cpu: "%[4]d", memory: %[5]dGi, pods: "110"}
`, size, zone, 1<<i, 4<<i, 16<<i)
		}
	}
	out.WriteString("  workload:\n")
	for i := range apps {
		fmt.Fprintf(&out, `  - name: app%d
    kind: ReplicaSet
    count: %d
    template:
      spec:
        affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
          {key: size, operator: In, values: [%s]}]}]}}}
        topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [app]}
        containers:
        - {name: c, resources: {requests: {cpu: %dm, memory: %dGi}}}
`, i, spreadAppPods, strings.Join([]string{sizes[i%3], sizes[(i+1)%3]}, ", "), 300+1200*i/apps, 1+5*i/apps)
	}
	out.WriteString("  policy: {flags: [--max-nodes-launching=0]}\n  end: {at: 10m}\n")
	return out.String()
}

// measureSpread plays the scenario; it measures nothing for more nodes than spreadMaxNodes.
func measureSpread(ctx context.Context, t task, m *meter) error {
	if t.Nodes > spreadMaxNodes {
		return nil
	}
	apps := spreadApps(t)
	run, err := scenario.Parse("spread.yaml", []byte(spreadScenario(apps)))
	if err != nil {
		return err
	}
	w, err := sim.New(run, sim.Options{})
	if err != nil {
		return err
	}
	var s *scenario.Summary
	took := m.time(func() { s, err = w.Run(ctx) })
	if err != nil {
		return err
	}
	pods := apps * spreadAppPods
	if s.Violations > 0 || s.Pods.Running != pods {
		return fmt.Errorf("%d of %d pods run in the end, and %d violations were found", s.Pods.Running, pods, s.Violations)
	}
	m.figures["spread total"] = took
	m.figures["spread pod"] = took / float64(pods) * 1e3
	return nil
}
