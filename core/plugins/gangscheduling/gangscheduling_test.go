package gangscheduling_test

import (
	"slices"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/gangscheduling"
	"github.com/berthproject/berth/internal/test/testkit"
)

func TestPreEnqueue(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		want []string // messages; nil when the pod may be queued
	}{
		{"no group", testkit.Pod("p"), nil},
		{"a group without a name", testkit.Pod("p").PodGroup(""), nil},
		{"a member", testkit.Pod("p").PodGroup("training"), []string{"this version of Berth cannot place members of pod groups, and the pod is a member of PodGroup training"}},
	} {
		got := gangscheduling.Plugin{}.PreEnqueue(cluster.NewSchema().ParsePod(c.pod.Obj()))
		switch {
		case got == nil && c.want != nil:
			t.Errorf("%s: the pod may be queued, want %v", c.name, c.want)
		case got != nil && (!slices.Equal(got.Messages, c.want) || got.Plugin != gangscheduling.Name || !got.OfPod):
			t.Errorf("%s: %+v, want a reason of the pod with %v", c.name, got, c.want)
		}
	}
}
