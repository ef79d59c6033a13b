package nodegroups_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestTaintsOfNewNodes shows nodes, each as NAME or NAME:TAINT,TAINT, those with a higher number
// created later, and says which taints new nodes of the group are taken to have.
func TestTaintsOfNewNodes(t *testing.T) {
	for _, x := range []struct{ name, template, shown, want string }{
		{"a taint from the beginning", "", "n1:a", "a"},
		{"a taint that came later", "", "n1 n1:a", ""},
		{"a taint that came later, and that the provider's template has", "a", "n1 n1:a", "a"},
		{"a taint that is gone", "a", "n1:a n1", ""},
		{"the newest alone has a taint", "", "n1 n2:a", ""},
		{"both have it", "", "n1:a n2:a", "a"},
		{"both have it, the older is shown last", "", "n2:a n1:a", "a"},
		{"the older doesn't have it, and is shown last", "", "n2:a n1", ""},
		{"the two newest have it", "", "n1 n2:a n3:a", "a"},
		{"one of two", "", "n1:a n2:a,b", "a"},
	} {
		t.Run(x.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			node := func(text string) *cluster.NodeInfo {
				name, taints, _ := strings.Cut(text, ":")
				b := testkit.Node(name)
				b.CreationTimestamp = metav1.NewTime(time.Unix(int64(name[1]), 0))
				for _, key := range strings.FieldsFunc(taints, func(r rune) bool { return r == ',' }) {
					b.Taint(key, "", v1.TaintEffectNoSchedule)
				}
				return schema.ParseNode(b.Obj(), "g")
			}
			m := nodegroups.New(nodegroups.Config{}, nil, nil)
			for shown := range strings.FieldsSeq(x.shown) {
				m.NodeUsable(node(shown), node("t0:"+x.template))
			}
			var got []string
			for _, taint := range m.Conditions(time.Unix(1000, 0))["g"].Newest.Object.Spec.Taints {
				got = append(got, taint.Key)
			}
			if strings.Join(got, ",") != x.want {
				t.Errorf("taints %q, want %q", got, x.want)
			}
		})
	}
}
