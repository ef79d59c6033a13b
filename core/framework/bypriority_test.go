package framework_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

func TestByPriority(t *testing.T) {
	queued := func(priority int32, at int64, sequence uint64) *framework.QueuedPod {
		return &framework.QueuedPod{Pod: &cluster.Pod{Priority: priority}, Queued: at, Sequence: sequence}
	}
	// The first of each pair comes before the second.
	for _, c := range []struct {
		name          string
		first, second *framework.QueuedPod
	}{
		{"higher priority, though queued later", queued(2, 9, 9), queued(1, 1, 1)},
		{"negative priorities", queued(-1, 9, 9), queued(-2, 1, 1)},
		{"queued earlier, though it came later", queued(1, 1, 9), queued(1, 2, 1)},
		{"came earlier", queued(1, 1, 1), queued(1, 1, 2)},
	} {
		if !framework.ByPriority(c.first, c.second) || framework.ByPriority(c.second, c.first) {
			t.Errorf("%s: %v and %v, want true and false", c.name, framework.ByPriority(c.first, c.second), framework.ByPriority(c.second, c.first))
		}
	}
	if p := queued(1, 1, 1); framework.ByPriority(p, p) {
		t.Error("a pod comes before itself")
	}
}
