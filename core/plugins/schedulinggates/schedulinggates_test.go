package schedulinggates_test

import (
	"slices"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/schedulinggates"
	"github.com/berthproject/berth/internal/test/testkit"
)

func TestPreEnqueue(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		want []string // messages; nil when the pod may be queued
	}{
		{"no gate", testkit.Pod("p"), nil},
		{"one", testkit.Pod("p").Gate("example.com/quota"), []string{"waiting for scheduling gates: [example.com/quota]"}},
		{"two", testkit.Pod("p").Gate("a").Gate("b"), []string{"waiting for scheduling gates: [a b]"}},
	} {
		got := schedulinggates.Plugin{}.PreEnqueue(cluster.NewSchema().ParsePod(c.pod.Obj()), nil)
		switch {
		case got == nil && c.want != nil:
			t.Errorf("%s: the pod may be queued, want %v", c.name, c.want)
		case got != nil && (!slices.Equal(got.Messages, c.want) || got.Plugin != schedulinggates.Name || !got.Final):
			t.Errorf("%s: %+v, want a final reason with %v", c.name, got, c.want)
		}
	}
}
