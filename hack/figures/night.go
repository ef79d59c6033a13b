package main

import (
	"context"
	"fmt"
	"time"
)

// night plays the three variants of examples/night-batch.
func night(ctx context.Context) (*result, error) {
	var all []played
	for _, x := range []struct {
		name, file string
		limit      int
	}{
		{"at most 70 launching", "night-batch/capped", 70},
		{"image baked, no limit", "night-batch/baked", 0},
		{"neither", "night-batch/unlimited", 0},
	} {
		p, err := play(ctx, x.name, x.file, limitOf(x.limit))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	r := &result{head: []string{"500 nodes, 10 GiB of image each", "published: all pods run after", "Berth, simulated", "published: most bytes written", "Berth, simulated", "launches that fail"}}
	for i, published := range [][2]string{{"22 min", "14 GB/s"}, {"under 5 min", "6 GB/s"}, {"launches fail again and again", "–"}} {
		p := &all[i]
		r.rows = append(r.rows, []string{p.name, published[0], span(p.Seconds), published[1], fmt.Sprintf("%.1f GB/s", p.Summary.PeakWriteRate/1e9), failedOf(&p.oneRun)})
	}
	r.pictures = []picture{{"night.svg", "The night batch: started pods, and bytes written, over time", overTime(time.Minute, "minutes", 90,
		plotOver{"Pods that have started", "pods", 500, started, all},
		plotOver{"Written to the disks", "GB/s", 14, written, all})}}
	return r, nil
}
