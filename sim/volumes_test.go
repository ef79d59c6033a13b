package sim

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestABindNeedsItsClaimsBound: a bind fails while one of the pod's claims isn't bound,
// whether or not it has anything to write.
func TestABindNeedsItsClaimsBound(t *testing.T) {
	for _, c := range []struct {
		name   string
		claims []string
		want   string // the error; "" for none
	}{
		{"the pod has no claim", nil, ""},
		{"its claim is bound", []string{"bound"}, ""},
		{"its claim is pending", []string{"pending"}, "binding volumes: claim default/pending is not bound"},
		{"its claim is gone", []string{"gone"}, "binding volumes: claim default/gone is not bound"},
		{"one of its claims is pending", []string{"bound", "pending"}, "binding volumes: claim default/pending is not bound"},
	} {
		w := newTestWorld(t, "  end: {at: 1h}\n")
		w.createAll(testkit.Claim("bound", "fast").Bound("v").Obj(), testkit.Claim("pending", "fast").Obj())
		got := ""
		if err := w.bindClaims(&step.Bind{Namespace: "default", Name: "p", Node: "n", Claims: c.claims}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got error %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTopologiesThatAClassAllows: a class without topologies provisions everywhere; one
// with them where all demands of one of them are met, and one without demands nowhere.
func TestTopologiesThatAClassAllows(t *testing.T) {
	demand := func(key string, values ...string) v1.TopologySelectorLabelRequirement {
		return v1.TopologySelectorLabelRequirement{Key: key, Values: values}
	}
	term := func(demands ...v1.TopologySelectorLabelRequirement) v1.TopologySelectorTerm {
		return v1.TopologySelectorTerm{MatchLabelExpressions: demands}
	}
	w := newTestWorld(t, "  end: {at: 1h}\n")
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a", "disk": "ssd"}}}
	for _, c := range []struct {
		name  string
		terms []v1.TopologySelectorTerm
		want  bool
	}{
		{"no topologies", nil, true},
		{"one without demands", []v1.TopologySelectorTerm{term()}, false},
		{"the second is met", []v1.TopologySelectorTerm{term(), term(demand("zone", "a", "b"))}, true},
		{"one demand of two is met", []v1.TopologySelectorTerm{term(demand("zone", "a"), demand("disk", "hdd"))}, false},
		{"both demands are met", []v1.TopologySelectorTerm{term(demand("zone", "a"), demand("disk", "ssd"))}, true},
		{"a label that the node hasn't", []v1.TopologySelectorTerm{term(demand("rack", ""))}, false},
	} {
		class := &storagev1.StorageClass{Provisioner: "disks.example.com", AllowedTopologies: c.terms}
		if got := w.canProvide(class, node); got != c.want {
			t.Errorf("%s: canProvide = %t, want %t", c.name, got, c.want)
		}
	}
}
