package main

import (
	"context"
	"fmt"
	"time"

	"github.com/berthproject/berth/core/lifecycle/launching"
)

// customer plays examples/scale/customer-night.yaml as it is, adaptively, under a
// limit that is too high, and under none.
// The limits differ in nothing but launches: what differs in the table is due to them.
func customer(ctx context.Context) (*result, error) {
	var all []played
	r := &result{head: []string{"limit of launches", "tasks completed", "nodes at the peak; in the end", "half of the tasks started after", "the last", "launches that fail", "cost", "waiting pods at the most"}}
	for _, x := range []struct {
		name  string
		limit int
	}{{"250 nodes", 250}, {"adaptive", int(launching.Adaptive)}, {"400 nodes", 400}, {"none", 0}} {
		p, err := play(ctx, "limit of launches: "+x.name, "scale/customer-night", limitOf(x.limit))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
		waiting := 0
		for i := range p.Samples {
			waiting = max(waiting, p.Samples[i].Pending)
		}
		s := p.Summary
		r.rows = append(r.rows, []string{x.name, thousands(s.Pods.Completed), fmt.Sprintf("%s; %d", thousands(s.Nodes.Peak), s.Nodes.Final),
			span(s.TimeToRunning.P50), span(s.TimeToRunning.Max), failedOf(&p.oneRun), fmt.Sprintf("$%.0f", s.Cost), thousands(waiting)})
	}
	r.after = "Published of such a night: more than 20,000 pods, up to 18,000 of them waiting at a time, and an autoscaler that ordered no node meanwhile."
	r.pictures = []picture{{"customer.svg", "A customer's night: nodes, running pods and bytes written over time", overTime(time.Hour, "hours", 6,
		plotOver{"Nodes", "nodes", 2000, nodes, all},
		plotOver{"Running pods, those of DaemonSets included", "pods", 0, running, all},
		plotOver{"Written to the disks", "GB/s", 14, written, all})}}
	return r, nil
}
