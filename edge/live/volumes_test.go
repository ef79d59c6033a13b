package live

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/cluster"
)

// TestAWriteThatAnotherBindHasMade has writes meet a conflict: the bind goes on if the API has what was to be
// written, however late the cache shows it, and fails otherwise.
func TestAWriteThatAnotherBindHasMade(t *testing.T) {
	volume := func(version, claim types.UID) *v1.PersistentVolume {
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "pv", ResourceVersion: string(version)}}
		if claim != "" {
			pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "c", UID: claim}
		}
		return pv
	}
	another := volume("6", "c")
	another.UID = "another"
	claim := func(version, node string) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", ResourceVersion: version, Annotations: map[string]string{cluster.AnnSelectedNode: node}}}
	}
	for _, c := range []struct {
		name    string
		write   cluster.Object
		first   cluster.Object // in the cache at first; nil for nothing
		then    cluster.Object // a while after; nil for what was there at first
		version string         // "" for an error
	}{
		{"the volume is reserved for the claim", volume("5", "c"), volume("6", "c"), nil, "6"},
		{"it is, as the cache shows late", volume("5", "c"), volume("5", ""), volume("7", "c"), "7"},
		{"for another claim", volume("5", "c"), volume("6", "d"), nil, ""},
		{"for none", volume("5", "c"), volume("6", ""), nil, ""},
		{"for the claim, and it is another volume", volume("5", "c"), another, nil, ""},
		{"it is gone", volume("5", "c"), nil, nil, ""},
		{"the claim has the node", claim("5", "n"), claim("6", "n"), nil, "6"},
		{"the claim has another node", claim("5", "n"), claim("6", "m"), nil, ""},
		{"the claim has no node any more", claim("5", "n"), claim("6", ""), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				client.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed"))
				})
				f := newCaches(client, transformFor(false), NewHealth(false), slog.New(slog.DiscardHandler))
				v := newVolumeBinder(client, f)
				put := func(o cluster.Object) {
					into := f.volumes
					if _, ok := o.(*v1.PersistentVolumeClaim); ok {
						into = f.claims
					}
					if err := into.Objects().Add(o); err != nil {
						t.Error(err)
					}
				}
				if c.first != nil {
					put(c.first)
				}
				if c.then != nil {
					time.AfterFunc(3*time.Second, func() { put(c.then) })
				}
				version, err := v.write(t.Context(), c.write)
				if version != c.version || (err != nil) != (c.version == "") || err != nil && !apierrors.IsConflict(err) {
					t.Errorf("got version %q and %v, want %q", version, err, c.version)
				}
			})
		})
	}
}

// The ways in which binding a pod's volumes ends. What happens after the write
// is put into the caches.
func TestVolumesAreBoundOrTheBindFails(t *testing.T) {
	claim := func(volume, node string, done bool) *v1.PersistentVolumeClaim {
		c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Annotations: map[string]string{}}}
		if c.Spec.VolumeName = volume; node != "" {
			c.Annotations["volume.kubernetes.io/selected-node"] = node
		}
		if done {
			c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
		}
		return c
	}
	volume := func(host string) *v1.PersistentVolume {
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{host}}}}}}}
		return pv
	}
	reserved := func(version string, claim types.UID) *v1.PersistentVolume {
		pv := volume("n")
		if pv.ResourceVersion = version; claim != "" {
			pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "c", UID: claim}
		}
		return pv
	}
	pod := func(uid types.UID) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid}}
	}
	for _, c := range []struct {
		name     string
		writes   []cluster.Object
		refusal  error
		then     []runtime.Object // states that the claim, its volume and the pod go through, a look each
		volume   *v1.PersistentVolume
		contains string // of the error; "" when the pod is bound
	}{
		{"bound at last", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("", "", false), claim("", "n", false), claim("pv", "n", true)}, volume("n"), ""},
		{"reserved and bound", []cluster.Object{volume("n")}, nil, []runtime.Object{claim("", "", false), claim("pv", "", true)}, volume("n"), ""},
		{"someone was faster", []cluster.Object{volume("n")}, apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumes"}, "pv", errors.New("changed")),
			[]runtime.Object{claim("", "", false)}, nil, "reserving volumes"},
		{"never bound", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("", "n", false)}, nil, "were not bound within"},
		{"given up", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("", "n", false), claim("", "", false)}, nil, "given up for node"},
		{"made elsewhere", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("pv", "n", true)}, volume("m"), "doesn't match node"},
		{"made elsewhere, as is known late", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("pv", "n", true), volume("m")}, nil, "doesn't match node"},
		{"made there, as is known late", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("pv", "n", true), volume("n")}, nil, ""},
		{"its volume is never known", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("pv", "n", true)}, nil, "were not bound within"},
		{"the reservation is reset", []cluster.Object{reserved("5", "c")}, nil, []runtime.Object{claim("", "", false), reserved("4", ""), reserved("6", "")}, reserved("4", ""), "ClaimRef got reset"},
		{"the reservation is seen late", []cluster.Object{reserved("5", "c")}, nil, []runtime.Object{claim("", "", false), reserved("5", "c"), claim("pv", "", true)}, reserved("4", ""), ""},
		{"another pod of that name", []cluster.Object{claim("", "n", false)}, nil, []runtime.Object{claim("", "n", false), pod("other")}, nil, "does not exist"},
		{"the claim goes", []cluster.Object{claim("", "n", false)}, nil, nil, nil, "not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset(claim("", "", false), volume("n"))
			if c.refusal != nil {
				client.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.refusal })
			}
			f := newCaches(client, transformFor(false), NewHealth(false), slog.New(slog.DiscardHandler))
			v := newVolumeBinder(client, f)
			v.period = time.Millisecond
			put := func(o runtime.Object) {
				into := f.claims
				switch o.(type) {
				case *v1.PersistentVolume:
					into = f.volumes
				case *v1.Pod:
					into = f.pods
				}
				if err := into.Objects().Add(o); err != nil {
					t.Error(err)
				}
			}
			put(pod("p"))
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.LabelHostname: "n"}}}
			if err := f.nodes.Objects().Add(node); err != nil {
				t.Fatal(err)
			}
			if c.volume != nil {
				if err := f.volumes.Objects().Add(c.volume); err != nil {
					t.Fatal(err)
				}
			}
			asked := 0
			v.beforeLook = func() { // once a poll: the claim moves on
				if asked < len(c.then) {
					put(c.then[asked])
				}
				asked++
			}
			err := v.bindClaims(context.Background(), step.Bind{Namespace: "ns", Name: "p", UID: "p", Node: "n", Writes: c.writes, Claims: []string{"c"}, Timeout: 200 * time.Millisecond})
			switch {
			case c.contains == "" && err != nil:
				t.Errorf("failed: %v", err)
			case c.contains != "" && (err == nil || !strings.Contains(err.Error(), c.contains)):
				t.Errorf("got %v, want …%s…", err, c.contains)
			}
		})
	}
}
