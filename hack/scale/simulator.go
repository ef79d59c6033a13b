package main

import (
	"context"
	"fmt"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// This file measures the virtual world, which plays Berth with everything around it.

// scenarioText is a scenario whose numbers are those of the task: see measureSimulator for their order.
const scenarioText = `
apiVersion: berth.dev/v1alpha1
kind: Scenario
metadata: {name: growth}
spec:
  seed: 1
  nodeGroups:
  - name: services
    max: %d
    initial: %d
    launchDelay: {min: 30s, max: 60s}
    startup: {min: 5s, max: 15s}
    template:
      allocatable: {cpu: %dm, memory: %dGi, pods: "110"}
  workload:
  - name: web
    kind: ReplicaSet
    copies: %d
    count: %d
    service: true
    arrive: {over: 5m}
    template:
      spec:
        containers:
        - name: c
          resources: {requests: {cpu: 100m, memory: 128Mi}}
  api: {bindsPerSecond: 10000} # so that a million pods are bound in time
  policy:
    flags: [--max-nodes-launching=0]
  end: {at: 10m}
`

// measureSimulator plays the scenario. The last tenth of the nodes has to be bought, so that both
// halves of Berth work.
func measureSimulator(ctx context.Context, t task, m *meter) error {
	each := t.pods() / t.Classes
	text := fmt.Sprintf(scenarioText, t.Nodes, t.Nodes-t.Nodes/10, 100*t.PodsPerNode+50, t.PodsPerNode, t.Classes, each)
	run, err := scenario.Parse("growth.yaml", []byte(text))
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
	if s.Violations > 0 || s.Pods.Running != each*t.Classes {
		return fmt.Errorf("%d of %d pods run in the end, and %d violations were found", s.Pods.Running, each*t.Classes, s.Violations)
	}
	m.figures["simulator total"] = took
	m.figures["simulator pod"] = took / float64(each*t.Classes) * 1e6
	return nil
}
