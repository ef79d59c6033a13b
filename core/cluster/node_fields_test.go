package cluster

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSameButTaint compares with copies that lack the taint, for every pair of versions of a node.
func TestSameButTaint(t *testing.T) {
	const key = "soft"
	soft := func(value string) v1.Taint {
		return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffectPreferNoSchedule}
	}
	hard := v1.Taint{Key: "hard", Effect: v1.TaintEffectNoSchedule}
	other := v1.Taint{Key: "other", Effect: v1.TaintEffectPreferNoSchedule}
	var versions []*NodeInfo
	for _, taints := range [][]v1.Taint{nil, {soft("1")}, {soft("2")}, {hard}, {hard, soft("1")}, {soft("2"), hard}, {soft("1"), hard, soft("2")}, {hard, other}, {other, soft("1"), hard}} {
		for _, labels := range []map[string]string{nil, {"zone": "a"}} {
			for _, group := range []string{"g", "h"} {
				n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}, Spec: v1.NodeSpec{Taints: taints}}
				versions = append(versions, NewSchema().ParseNode(n, group))
			}
		}
	}
	same := 0
	for _, a := range versions {
		for _, b := range versions {
			want := sameNode(a.WithoutTaint(key), b.WithoutTaint(key))
			if got := a.SameButTaint(b, key); got != want {
				t.Errorf("%v in %s with taints %v against %v in %s with %v: got %v", a.Object.Labels, a.Group, a.Taints, b.Object.Labels, b.Group, b.Taints, got)
			}
			if want && a != b {
				same++
			}
		}
	}
	if same == 0 {
		t.Error("no two versions differ in the taint alone")
	}
	if n := testing.AllocsPerRun(10, func() { versions[len(versions)-1].SameButTaint(versions[0], key) }); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
}
