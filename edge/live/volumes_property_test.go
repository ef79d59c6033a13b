package live

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// provisioned is a claim that is provisioned for node n: it is bound to its volume at one look,
// and the cache shows the volume at another, in which order ever.
type provisioned struct {
	bound, known int    // the looks, 0 for never
	host         string // that the volume can be used on
	limit        int    // looks that the bind has time for
}

// usable reports whether the pod may be bound within its time.
func (x *provisioned) usable() bool {
	return x.bound > 0 && x.known > 0 && max(x.bound, x.known) <= x.limit && x.host == "n"
}

func (x *provisioned) claim(look int) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Annotations: map[string]string{cluster.AnnSelectedNode: "n"}}}
	if x.bound > 0 && look >= x.bound {
		c.Spec.VolumeName = "pv"
		c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	}
	return c
}

func (x *provisioned) volume() *v1.PersistentVolume {
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{x.host}}}}}}}
	return pv
}

// bind waits for the claim of a pod, and returns the outcome and how many looks it took.
func (x *provisioned) bind(ctx context.Context) (looks int, err error) {
	claim := x.claim(0)
	client := fake.NewClientset(claim)
	f := newCaches(client, transformFor(false), NewHealth(false), slog.New(slog.DiscardHandler))
	put := func(into cache.Store, o runtime.Object) {
		if wrong := into.Add(o); wrong != nil {
			panic(wrong)
		}
	}
	put(f.nodes.Objects(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.LabelHostname: "n"}}})
	put(f.pods.Objects(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}})
	v := newVolumeBinder(client, f)
	v.beforeLook = func() {
		looks++
		put(f.claims.Objects(), x.claim(looks))
		if x.known > 0 && looks >= x.known {
			put(f.volumes.Objects(), x.volume())
		}
	}
	err = v.bindClaims(ctx, step.Bind{Namespace: "ns", Name: "p", UID: "p", Node: "n", Writes: []cluster.Object{claim}, Claims: []string{"c"}, Timeout: time.Duration(x.limit)*v.period - v.period/2})
	return looks, err
}

// TestPropertyAPodIsBoundOnceItsVolumeIsKnown has the caches of claims and of volumes be ahead of each
// other: the pod is bound at the first look at which the claim is bound and the volume is known to be
// usable on the node, and not without.
func TestPropertyAPodIsBoundOnceItsVolumeIsKnown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := &provisioned{bound: rapid.IntRange(0, 8).Draw(rt, "bound"), known: rapid.IntRange(0, 12).Draw(rt, "known"),
			host: rapid.SampledFrom([]string{"n", "n", "m"}).Draw(rt, "host"), limit: rapid.IntRange(4, 12).Draw(rt, "limit")}
		var looks int
		var err error
		synctest.Test(t, func(t *testing.T) { looks, err = x.bind(t.Context()) })
		switch {
		case (err == nil) != x.usable():
			rt.Fatalf("the outcome for %+v is %v after %d looks", *x, err, looks)
		case err == nil && looks != max(x.bound, x.known):
			rt.Fatalf("the pod is bound at look %d for %+v", looks, *x)
		}
	})
}
