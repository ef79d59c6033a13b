package headroom

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestHowManyChunksABufferHas of 2 CPUs and 1Gi each.
func TestHowManyChunksABufferHas(t *testing.T) {
	type spec = autoscalingapi.CapacityBufferSpec
	limits := func(pairs ...string) v1.ResourceList {
		out := v1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	for _, c := range []struct {
		name     string
		spec     spec
		replicas int // of the scalable, -1 without one
		want     int
		err      string
	}{
		{"replicas", spec{Replicas: new(int32(3))}, -1, 3, ""},
		{"none", spec{Replicas: new(int32(0))}, -1, 0, ""},
		{"fewer than none", spec{Replicas: new(int32(-1))}, -1, 0, ""},
		{"a percentage", spec{Percentage: new(int32(50))}, 10, 5, ""},
		{"a percentage, rounded down", spec{Percentage: new(int32(20))}, 9, 1, ""},
		{"a percentage of nothing", spec{Percentage: new(int32(20))}, 0, 0, ""},
		{"a percentage without a scalable", spec{Percentage: new(int32(20))}, -1, 0, "is set; set one of them"},
		{"replicas beside a percentage without a scalable", spec{Percentage: new(int32(20)), Replicas: new(int32(2))}, -1, 2, ""},
		{"limits", spec{Limits: limits("cpu", "7")}, -1, 3, ""},
		{"limits of two resources", spec{Limits: limits("cpu", "7", "memory", "2Gi")}, -1, 2, ""},
		{"limits of what a chunk doesn't request, too", spec{Limits: limits("cpu", "7", "gpu", "0")}, -1, 3, ""},
		{"limits of what a chunk doesn't request", spec{Limits: limits("gpu", "4")}, -1, 0, "requests none of the resources that limits names, [gpu]"},
		{"limits below one chunk", spec{Limits: limits("cpu", "1")}, -1, 0, ""},
		{"the fewest of all", spec{Replicas: new(int32(4)), Percentage: new(int32(50)), Limits: limits("cpu", "5")}, 10, 2, ""},
		{"too many", spec{Replicas: new(int32(10001))}, -1, 0, "would have 10001 chunks, more than the limit of 10000"},
		{"nothing said", spec{}, 10, 0, "is set; set one of them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := chunks(&c.spec, testkit.Pod("p").Req("cpu", "2", "memory", "1Gi").Obj(), c.replicas)
			if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%d chunks, %v; want %d, %q", got, err, c.want, c.err)
			}
		})
	}
}
