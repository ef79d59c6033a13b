package nodegroups_test

import (
	"slices"
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
// created later, and says which taints new nodes of the group are taken to have. A node with a + was
// seen before it was usable; the others are older than the process.
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
		{"the two newest have it", "", "n1 +n2:a +n3:a", "a"},
		{"one of two", "", "n1:a n2:a,b", "a"},
		{"the two newest have it, an older one doesn't", "", "n1 n2:a n3:a", ""},
		{"the two newest have it, and the provider's template", "a", "n1 n2:a n3:a", "a"},
		{"all have it", "", "n1:a n2:a n3:a", "a"},
		{"all had it, and an older one has lost it", "", "n1:a n2:a n1", ""},
		{"a new one has it as the newest before it has", "", "n1 n2:a +n3:a", "a"},
		{"a new one doesn't have it", "", "n1:a n2:a +n3", ""},
		{"a new one has it alone", "", "n1 n2 +n3:a", ""},
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
				name, starting := strings.CutPrefix(shown, "+")
				if starting {
					m.NodeShown(node(name), node("t0:"+x.template), false)
				}
				m.NodeShown(node(name), node("t0:"+x.template), true)
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

// TestANodeFromAnotherGroup shows a node that moves from group to group, and says for which groups it
// is what new nodes look like.
func TestANodeFromAnotherGroup(t *testing.T) {
	given, none := testkit.Node("t").Alloc("cpu", "4").Obj(), &v1.Node{}
	for _, x := range []struct {
		name     string
		template *v1.Node // of each group; nil for an unknown group
		groups   []string
		want     string
	}{
		{"in one group", given, []string{"g"}, "g"},
		{"from one to the other", given, []string{"g", "h"}, "g"},
		{"back again", given, []string{"g", "h", "g"}, "g"},
		{"the provider says late in which group it is", given, []string{"", "g"}, "g"},
		{"the provider never says what nodes look like", none, []string{"g", "h"}, "g h"},
		{"the provider hasn't told of the group yet", nil, []string{"g", "h"}, "g"},
	} {
		t.Run(x.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			var template *cluster.NodeInfo
			if x.template != nil {
				template = schema.ParseNode(x.template, "")
			}
			m := nodegroups.New(nodegroups.Config{}, nil, nil)
			for _, group := range x.groups {
				m.NodeShown(schema.ParseNode(testkit.Node("n").Obj(), group), template, true)
			}
			var got []string
			for id, c := range m.Conditions(time.Unix(1000, 0)) {
				if c.Newest != nil {
					got = append(got, id)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != x.want {
				t.Errorf("it is the model of %q, want %q", got, x.want)
			}
		})
	}
	t.Run("another node has its name", func(t *testing.T) {
		schema := cluster.NewSchema()
		m := nodegroups.New(nodegroups.Config{}, nil, nil)
		template := schema.ParseNode(given, "")
		n := testkit.Node("n")
		m.NodeShown(schema.ParseNode(n.Obj(), "g"), template, true)
		m.NodeGone("n")
		m.NodeShown(schema.ParseNode(n.Obj(), "h"), template, true)
		if m.Conditions(time.Unix(1000, 0))["h"].Newest == nil {
			t.Error("it isn't the model of its group")
		}
	})
}
