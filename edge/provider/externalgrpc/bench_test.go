package externalgrpc_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// slow has every call of a server take a time, as that of a cloud does.
func slow(d time.Duration) intercept {
	return func(_ context.Context, _ string, _ any, next func() (any, error)) (any, error) {
		time.Sleep(d)
		return next()
	}
}

// BenchmarkGroups reads 200 groups of 10 instances from a server whose calls take a millisecond
// each: five calls a group.
func BenchmarkGroups(b *testing.B) {
	var groups []nodegroup.Group
	for i := range 200 {
		groups = append(groups, group(fmt.Sprintf("g%03d", i), func(g *nodegroup.Group) {
			g.Target = 10
			for k := range 10 {
				g.Instances = append(g.Instances, nodegroup.Instance{ID: fmt.Sprintf("fake://%s/%d", g.ID, k)})
			}
		}))
	}
	bed := newBed(b, long, newFakeProvider(groups...), slow(time.Millisecond))
	bed.list(b)
	for b.Loop() {
		bed.list(b)
	}
}

// BenchmarkOrder orders 2,000 nodes across 20 groups, all groups at the same time, from a server
// whose calls take a millisecond each, and reads them back.
func BenchmarkOrder(b *testing.B) {
	var groups []nodegroup.Group
	for i := range 20 {
		groups = append(groups, group(fmt.Sprintf("g%02d", i)))
	}
	for b.Loop() {
		b.StopTimer()
		bed := newBed(b, long, newFakeProvider(groups...), slow(time.Millisecond))
		bed.list(b)
		b.StartTimer()
		var wg sync.WaitGroup
		for i := range groups {
			wg.Go(func() {
				if err := bed.IncreaseSize(b.Context(), groups[i].ID, 100); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		instances := 0
		for _, g := range bed.list(b) {
			instances += len(g.Instances)
		}
		if instances != 2000 {
			b.Fatalf("%d instances are listed, want 2000", instances)
		}
	}
}
