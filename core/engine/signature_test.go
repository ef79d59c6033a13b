package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPodsThatRulesTellApart has pairs of pods that differ in one thing that a
// rule reads, each rarely enough met by the random search for signatures.
func TestPodsThatRulesTellApart(t *testing.T) {
	pod := func() *testkit.PodBuilder { return testkit.Pod("p").Label("app", "web").Req("cpu", "1") }
	hard := func() *testkit.PodBuilder { return pod().SpreadHard(v1.LabelTopologyZone, 1, "app", "web") }
	two := int32(2)
	for _, c := range []struct {
		name string
		a, b *testkit.PodBuilder
	}{
		{"request", pod(), pod().Req("cpu", "2")},
		{"what counts for the score", pod(), func() *testkit.PodBuilder {
			p := pod()
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "second"}) // requests nothing, and counts 200Mi
			return p
		}()},
		{"weight of a preferred term", pod().PreferTogether(1, v1.LabelTopologyZone, "app", "db"), pod().PreferTogether(2, v1.LabelTopologyZone, "app", "db")},
		{"kind of term", pod().Together(v1.LabelTopologyZone, "app", "db"), pod().Apart(v1.LabelTopologyZone, "app", "db")},
		{"whether it meets its own affinity", pod().Together(v1.LabelTopologyZone, "app", "web"), pod().Label("app", "db").Together(v1.LabelTopologyZone, "app", "web")},
		{"a label that a placed pod's term reads", pod(), pod().Label("tier", "front")},
		{"maxSkew", hard(), pod().SpreadHard(v1.LabelTopologyZone, 2, "app", "web")},
		{"hard or soft", hard(), pod().SpreadSoft(v1.LabelTopologyZone, 1, "app", "web")},
		{"minDomains", hard(), func() *testkit.PodBuilder {
			p := hard()
			p.Spec.TopologySpreadConstraints[0].MinDomains = &two
			return p
		}()},
		{"whether it counts itself", hard(), hard().Label("app", "db")},
		{"tolerated effect", pod().Tolerate("k"), func() *testkit.PodBuilder {
			p := pod().Tolerate("k")
			p.Spec.Tolerations[0].Effect = v1.TaintEffectNoExecute
			return p
		}()},
		{"number of containers, where an image is known", image(pod(), "known:1"), image(image(pod(), "known:1"), "")},
		{"a known image", pod(), image(pod(), "known:1")},
		{"a claim that is short of its volume", uses("p", "waits"), uses("p", "missing")},
		{"size of a claim", uses("p", "waits"), uses("p", "larger")},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			n := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Zone("a")
			n.Status.Images = []v1.ContainerImage{{Names: []string{"known:1"}, SizeBytes: 500 << 20}}
			s.SetNode(schema.ParseNode(n.Obj(), ""))
			s.Place(schema.ParsePod(testkit.Pod("other").Apart(v1.LabelTopologyZone, "tier", "back").Obj()), "n")
			s.SetObject(class("fast", "csi.example"))
			s.SetObject(claim("waits", "fast", ""))
			larger := claim("larger", "fast", "")
			larger.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("7Gi")}
			s.SetObject(larger)
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
			if e.Class(schema.ParsePod(c.a.Obj())) == e.Class(schema.ParsePod(c.b.Obj())) {
				t.Error("the two are one class")
			}
			again := *c.a
			again.Name, again.UID = "q", "pod-q"
			if e.Class(schema.ParsePod(c.a.Obj())) != e.Class(schema.ParsePod(again.Obj())) {
				t.Error("two pods that differ in name only are two classes")
			}
		})
	}
}

// What one plugin signs must not pass for what the next does, even if neither says how
// much it signs: here each signs a label, where the pod has it.
func TestPodsThatDifferentPluginsReadAreTwoClasses(t *testing.T) {
	signs := func(label string, local bool) framework.Weighted {
		return weighted(1, &scripted{name: label, sign: func(pod *cluster.Pod, l, g *framework.Signature) {
			sig := g
			if local {
				sig = l
			}
			if v, ok := pod.Object.Labels[label]; ok {
				sig.Str(v)
			}
		}})
	}
	for _, local := range []bool{true, false} {
		s := nodes(testkit.Node("n"))
		e := testkit.Must(engine.New(s, &framework.Profile{Plugins: []framework.Weighted{signs("a", local), signs("b", local)}}, engine.Options{}))
		one := e.Class(s.Schema.ParsePod(testkit.Pod("p").Label("a", "x").Obj()))
		other := e.Class(s.Schema.ParsePod(testkit.Pod("q").Label("b", "x").Obj()))
		if one == other {
			t.Errorf("signed as local %v: pods that differ for both plugins are one class", local)
		}
	}
	// Nor may what is signed as local pass for what is signed as group.
	s := nodes(testkit.Node("n"))
	e := testkit.Must(engine.New(s, &framework.Profile{Plugins: []framework.Weighted{signs("a", true), signs("b", false)}}, engine.Options{}))
	if e.Class(s.Schema.ParsePod(testkit.Pod("p").Label("a", "x").Obj())) == e.Class(s.Schema.ParsePod(testkit.Pod("q").Label("b", "x").Obj())) {
		t.Error("pods that differ in what is signed as local and as group are one class")
	}
}

// image gives the pod's only container an image, or another container with
// none.
func image(p *testkit.PodBuilder, name string) *testkit.PodBuilder {
	if name == "" {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "second", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse("0"), "memory": resource.MustParse("0")}}})
		return p
	}
	p.Spec.Containers[0].Image = name
	return p
}
