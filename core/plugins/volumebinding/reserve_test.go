package volumebinding_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/volumebinding"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// taken lists what delayed claims have taken: "pv for c" for volumes, by whom they
// were bound and for which object, and "c on a" for claims to be provisioned.
func taken(world *rt.Cluster) string {
	var out []string
	for _, o := range world.Objects() {
		switch o := o.(type) {
		case *v1.PersistentVolume:
			if ref := o.Spec.ClaimRef; ref != nil {
				text := fmt.Sprint(o.Name, " for ", ref.Name)
				if ref.UID == "" {
					text += " by name"
				}
				if maps.Equal(o.Annotations, map[string]string{cluster.AnnBoundByController: "yes"}) {
					text += " by a controller"
				}
				out = append(out, text)
			}
		case *v1.PersistentVolumeClaim:
			if n, ok := o.Annotations[cluster.AnnSelectedNode]; ok {
				out = append(out, fmt.Sprint(o.Name, " on ", n))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestAssume(t *testing.T) {
	free := func(name, size string) *testkit.VolumeBuilder { return testkit.Volume(name, "static").Size(size) }
	for _, c := range []struct {
		name    string
		pod     *testkit.PodBuilder
		objects rt.Objects
		was     string
		want    string // on node a
	}{
		{"no claims", pod(), nil, "", ""},
		{"a bound claim", pod("c"), rt.Objects{testkit.Claim("c", "fast").Bound("pv").Obj(), testkit.Volume("pv", "fast").Obj()}, "", ""},
		{"a claim that can't be used", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj()}, "", ""},
		{"provisioned", pod("c"), rt.Objects{testkit.Claim("c", "fast").Obj()}, "", "c on a"},
		{"selected before", pod("c"), rt.Objects{testkit.Claim("c", "fast").SelectedNode("a").Obj()}, "c on a", "c on a"},
		{"selected for another node", pod("c"), rt.Objects{testkit.Claim("c", "fast").SelectedNode("b").Obj()}, "c on b", "c on b"},
		{"a volume", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("pv", "1Gi").Obj()}, "", "pv for c by a controller"},
		{"the smallest that is large enough", pod("c"), rt.Objects{testkit.Claim("c", "static").Size("2Gi").Obj(), free("p1", "1Gi").Obj(), free("p5", "5Gi").Obj(), free("p2", "2Gi").Obj(), free("p3", "3Gi").Obj()}, "", "p2 for c by a controller"},
		{"of equal size the first by name", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p2", "1Gi").Obj(), free("p1", "1Gi").Obj()}, "", "p1 for c by a controller"},
		{"of equal size, one of them on the host", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p2", "1Gi").Obj(), free("p1", "1Gi").In(hostname, "a").Obj()}, "", "p1 for c by a controller"},
		{"the smallest on the node", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p1", "1Gi").In(zone, "b").Obj(), free("p2", "2Gi").Obj()}, "", "p2 for c by a controller"},
		{"one that names the claim before smaller ones", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p1", "1Gi").Obj(), free("p9", "9Gi").ClaimedBy("c", "").Obj()}, "p9 for c by name", "p9 for c"},
		{"one that names this very claim", pod("c"), rt.Objects{testkit.Claim("c", "static").Obj(), free("p9", "9Gi").ClaimedBy("c", "claim-c").Obj()}, "p9 for c", "p9 for c"},
		{"smaller claims choose first", pod("d", "c"), rt.Objects{testkit.Claim("c", "static").Size("1Gi").Obj(), testkit.Claim("d", "static").Size("2Gi").Obj(), free("p3", "3Gi").Obj(), free("p4", "4Gi").Obj()}, "",
			"p3 for c by a controller, p4 for d by a controller"},
		{"equal claims choose in the pod's order", pod("d", "c"), rt.Objects{testkit.Claim("c", "static").Obj(), testkit.Claim("d", "static").Obj(), free("p3", "3Gi").Obj(), free("p4", "4Gi").Obj()}, "",
			"p3 for d by a controller, p4 for c by a controller"},
		{"what isn't found is provisioned", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj(), testkit.Claim("d", "fast").Obj(), testkit.Volume("pv", "fast").Obj()}, "",
			"d on a, pv for c by a controller"},
		{"nothing where one claim can't be had", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj(), testkit.Claim("d", "static").Obj()}, "", ""},
		{"nothing on a node that a bound volume doesn't admit", pod("c", "d"), rt.Objects{testkit.Claim("c", "fast").Obj(), testkit.Claim("d", "fast").Bound("pv").Obj(), testkit.Volume("pv", "fast").In(zone, "b").Obj()}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := rt.NewCluster(t, nodes(), append(classes(), c.objects...), nil)
			if got := taken(world); got != c.was {
				t.Fatalf("before: %q, want %q", got, c.was)
			}
			mark, head := world.Mark(), world.Head()
			volumebinding.Plugin{}.Assume(world.Parse(c.pod), world.NodeByName("a"), world.State)
			if got := taken(world); got != c.want {
				t.Errorf("taken: %q, want %q", got, c.want)
			}
			if c.want == c.was && world.Head() != head {
				changes, _ := world.Since(head)
				for i := range changes {
					if o := changes[i].Object; o != nil && o.New.GetName() != "c" { // its annotation is written again
						t.Errorf("%s was changed, though nothing of it is new", o.New.GetName())
					}
				}
			}
			world.Rollback(mark)
			if got := taken(world); got != c.was {
				t.Errorf("after the rollback: %q, want %q: Assume has changed an object in place", got, c.was)
			}
		})
	}
}

// The reference is the whole one that the API server is to store.
func TestAssumedReference(t *testing.T) {
	c := testkit.Claim("c", "static")
	c.ResourceVersion = "7"
	world := rt.NewCluster(t, nodes(), append(classes(), c.Obj(), testkit.Volume("pv", "static").Obj()), nil)
	volumebinding.Plugin{}.Assume(world.Parse(pod("c")), world.NodeByName("a"), world.State)
	want := v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "c", UID: "claim-c", ResourceVersion: "7"}
	if got := world.Volume("pv").Spec.ClaimRef; got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What is taken for one pod isn't there for the next.
func TestAssumedVolumesAreGone(t *testing.T) {
	objects := append(classes(), testkit.Claim("c", "static").Obj(), testkit.Claim("d", "static").Obj(), testkit.Volume("pv", "static").Obj())
	world := rt.NewCluster(t, nodes(), objects, nil)
	feasible := func(b *testkit.PodBuilder) bool {
		rules, _ := volumebinding.Plugin{}.For(world.Parse(b), world.State)
		code, _ := rules.Local.EvalNode(world.NodeByName("a"))
		return code == 0
	}
	if !feasible(pod("d")) {
		t.Fatal("the volume isn't there to begin with")
	}
	volumebinding.Plugin{}.Assume(world.Parse(pod("c")), world.NodeByName("a"), world.State)
	if feasible(pod("d")) {
		t.Error("pod of claim d may still go to node a, whose only volume claim c has taken")
	}
	if !feasible(pod("c")) {
		t.Error("the pod of claim c may no longer go to node a, where its volume is")
	}
}
