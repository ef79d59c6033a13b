package main

import (
	"context"
	"fmt"
	"time"

	"github.com/berthproject/berth/sim"
)

// waiting is a value of samples that is drawn.
func waiting(s *sim.Sample) float64 { return float64(s.Pending) }

// drains plays 1,000 nodes of which most can go, drained one at a time and fifty at a time.
func drains(ctx context.Context) (*result, error) {
	r := &result{head: []string{"1,000 nodes with 10,000 pods", "published", "from the first eviction to the last removal", "nodes in the end", "replacements that wait more than 30 s"}}
	var all []played
	for _, x := range []struct{ name, file, published string }{
		{"one at a time, Cluster Autoscaler's default and Berth's", "scale-down/drain-1", "hours in clusters of a thousand nodes"},
		{"fifty at a time", "scale-down/drain-50", "–"},
	} {
		p, err := play(ctx, x.name, x.file, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
		s := p.Summary
		r.rows = append(r.rows, []string{x.name, x.published, span(s.Drain.Duration), thousands(s.Nodes.Final), thousands(s.Drain.Homeless)})
	}
	r.pictures = []picture{{"drains.svg", "Nodes, drained one at a time and fifty at a time", overTime(time.Hour, "hours", 9,
		plotOver{"Nodes", "nodes", 1000, nodes, all})}}
	return r, nil
}

// homes plays nodes that are drained while a batch of pods wants the same room, with room kept for the
// evicted pods and without.
func homes(ctx context.Context) (*result, error) {
	r := &result{head: []string{"nodes are drained while a batch arrives that needs the same room", "pods evicted", "replacements that wait more than 30 s", "pod-seconds with nobody in the place of an evicted pod"}}
	var all []played
	for _, x := range []struct{ name, file string }{
		{"room kept, Berth's default", "scale-down/homes-kept"},
		{"not kept, as in Cluster Autoscaler", "scale-down/homes-not-kept"},
	} {
		p, err := play(ctx, x.name, x.file, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
		d := p.Summary.Drain
		r.rows = append(r.rows, []string{x.name, thousands(d.Pods), thousands(d.Homeless), fmt.Sprintf("%.0f", d.GapSeconds)})
	}
	r.pictures = []picture{{"homes.svg", "Nodes and waiting pods, with room kept for evicted pods and without", overTime(time.Minute, "minutes", 20,
		plotOver{"Nodes", "nodes", 0, nodes, all},
		plotOver{"Waiting pods", "pods", 0, waiting, all})}}
	return r, nil
}
