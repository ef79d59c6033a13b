package autoscaler_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/testkit"
)

// TestNewer says which of two nodes new nodes of their group are planned after.
func TestNewer(t *testing.T) {
	schema := cluster.NewSchema()
	node := func(name string, created int64, zone string) *cluster.NodeInfo {
		b := testkit.Node(name).Zone(zone)
		b.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
		return schema.ParseNode(b.Obj(), "g")
	}
	old := node("m", 100, "a")
	for _, x := range []struct {
		name string
		now  *cluster.NodeInfo
		want bool // now, not old
	}{
		{"none", nil, false},
		{"one created later", node("z", 101, "a"), true},
		{"one created before", node("a", 99, "a"), false},
		{"one of the same second, before it by name", node("a", 100, "a"), true},
		{"one of the same second, after it by name", node("z", 100, "a"), false},
		{"the same node as it is now", node("m", 100, "b"), true},
	} {
		if got := autoscaler.Newer(old, x.now); (got == x.now) != x.want {
			t.Errorf("%s: got %v", x.name, got)
		}
		if got := autoscaler.Newer(nil, x.now); got != x.now {
			t.Errorf("%s, before which there was none: got %v", x.name, got)
		}
	}
}
