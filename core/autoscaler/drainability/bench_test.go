package drainability_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// ordinary returns pods of ReplicaSets, ten each, and the context to judge them in.
func ordinary(n int) (drainability.Context, []*cluster.Pod) {
	s, flags := cluster.New(cluster.NewSchema()), core.DefaultAutoscale().Removal
	pods := make([]*cluster.Pod, n)
	for i := range pods {
		owner := fmt.Sprint("web-", i/10)
		s.SetWorkload(&cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: owner})
		pods[i] = s.Schema.ParsePod(cluster.Trim(testkit.Pod(fmt.Sprint("p", i)).Owner("apps/v1", "ReplicaSet", owner).Obj()))
	}
	return drainability.Context{Rules: &flags, State: s, Now: now}, pods
}

// BenchmarkJudge judges ordinary pods, 150,000 different ones.
func BenchmarkJudge(b *testing.B) {
	c, pods := ordinary(150_000)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if v := c.Judge(pods[i%len(pods)]); v.Outcome != drainability.Evict {
			b.Fatalf("an ordinary pod: %+v", v)
		}
	}
}

func TestJudgingAnOrdinaryPodAllocatesNothing(t *testing.T) {
	c, pods := ordinary(1)
	if n := testing.AllocsPerRun(100, func() { c.Judge(pods[0]) }); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
}
