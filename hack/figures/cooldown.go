package main

import (
	"context"
	"fmt"
	"time"
)

// cooldown plays two groups, of which one keeps growing while the other has nothing left to do, by
// delays of each group and of the cluster.
func cooldown(ctx context.Context) (*result, error) {
	var all []played
	r := &result{head: []string{"ten nodes of one group are empty, another group grows for six hours", "published", "cost", "node hours", "saved"}}
	for _, x := range []struct{ name, file, published string }{
		{"delays of the cluster, Cluster Autoscaler's default", "scale-down/cooldown-cluster", "they go much later, as each scale-up begins the delay anew"},
		{"delays of each group, Berth's default", "scale-down/cooldown-per-group", "they go soon after the task ends"},
	} {
		p, err := play(ctx, x.name, x.file, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
		r.rows = append(r.rows, []string{x.name, x.published, fmt.Sprintf("$%.2f", p.Summary.Cost), fmt.Sprintf("%.1f", p.Summary.NodeHours),
			fmt.Sprintf("%.0f %%", 100*(1-p.Summary.Cost/all[0].Summary.Cost))})
	}
	r.pictures = []picture{{"cooldown.svg", "Nodes, and what they have cost, by delays of the cluster and of each group", overTime(time.Hour, "hours", 8,
		plotOver{"Nodes", "nodes", 0, nodes, all},
		plotOver{"Cost so far", "$", 0, cost, all})}}
	return r, nil
}
