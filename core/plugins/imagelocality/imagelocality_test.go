package imagelocality_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/imagelocality"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const mega = 1 << 20 // bytes

func plugin(s *cluster.Schema) framework.Plugin { return imagelocality.New(s.Version()) }

func pod(images ...string) *testkit.PodBuilder {
	b := testkit.Pod("p")
	b.Spec.Containers = nil
	for _, name := range images {
		b.Spec.Containers = append(b.Spec.Containers, v1.Container{Name: "c", Image: name})
	}
	return b
}

func initImages(b *testkit.PodBuilder, images ...string) *testkit.PodBuilder {
	for _, name := range images {
		b.Spec.InitContainers = append(b.Spec.InitContainers, v1.Container{Name: "i", Image: name})
	}
	return b
}

func imageVolume(b *testkit.PodBuilder, image string) *testkit.PodBuilder {
	return b.ImageVolume("v", image)
}

// An image counts its size times the part of the nodes that have it. Up to 23 MiB
// score 0, 1000 MiB for each container and image volume 100, what is between in proportion, cut. The
// score isn't normalised.
func TestScore(t *testing.T) {
	node := testkit.Node
	skip := rt.Want{rt.All: rt.Skip}
	two := rt.Nodes{node("a").Images(300*mega, "web:1"), node("b").Images(900*mega, "db:1")}
	rt.Table{Plugin: plugin, Nodes: two, Cases: []rt.Case{
		{Name: "no node has an image of it", Pod: pod("cache:1"), Want: skip},
		{Name: "one of two nodes has it", Pod: pod("web:1"), Want: rt.Want{"a": "12 raw 12", "b": "0 raw 0"}},         // (150 − 23) / 977
		{Name: "two images on two nodes", Pod: pod("web:1", "db:1"), Want: rt.Want{"a": "6 raw 6", "b": "21 raw 21"}}, // (150 − 23) / 1977, (450 − 23) / 1977
		{Name: "both nodes have it, in two sizes", Pod: pod("web:1"), Nodes: rt.Nodes{node("a").Images(300*mega, "web:1"), node("b").Images(500*mega, "web:1")},
			Want: rt.Want{"a": "28 raw 28", "b": "48 raw 48"}}, // (300 − 23) / 977, (500 − 23) / 977
		{Name: "one of the nodes has it, one of another size and one not", Pod: pod("web:1"), Nodes: rt.Nodes{node("a").Images(300*mega, "web:1"), node("b").Images(600*mega, "web:1"), node("c")},
			Want: rt.Want{"a": "18 raw 18", "b": "38 raw 38", "c": "0 raw 0"}}, // (200 − 23) / 977, (400 − 23) / 977
		{Name: "nodes that can't take the pod count as nodes", Pod: pod("web:1"), Elsewhere: []string{"b"}, Want: rt.Want{"a": "12 raw 12"}},
		{Name: "sizes add up", Pod: pod("web:1", "db:1"), Nodes: rt.Nodes{node("a").Images(300*mega, "web:1").Images(900*mega, "db:1")}, Want: rt.Want{"a": "59 raw 59"}},          // (1200 − 23) / 1977
		{Name: "an image that two containers use counts twice", Pod: pod("web:1", "web:1"), Nodes: rt.Nodes{node("a").Images(300*mega, "web:1")}, Want: rt.Want{"a": "29 raw 29"}}, // (600 − 23) / 1977
		{Name: "the lower bound", Pod: pod("web:1"), Nodes: rt.Nodes{node("a").Images(23*mega, "web:1")}, Want: rt.Want{"a": "0 raw 0"}},
		{Name: "below it", Pod: pod("web:1"), Nodes: rt.Nodes{node("a").Images(1*mega, "web:1")}, Want: rt.Want{"a": "0 raw 0"}},
		{Name: "the upper bound", Pod: pod("web:1"), Nodes: rt.Nodes{node("a").Images(1000*mega, "web:1")}, Want: rt.Want{"a": "100 raw 100"}},
		{Name: "above it", Pod: pod("web:1"), Nodes: rt.Nodes{node("a").Images(9000*mega, "web:1")}, Want: rt.Want{"a": "100 raw 100"}},
		{Name: "more containers raise it", Pod: pod("web:1", "cache:1"), Nodes: rt.Nodes{node("a").Images(1000*mega, "web:1")}, Want: rt.Want{"a": "49 raw 49"}}, // (1000 − 23) / 1977
		{Name: "init containers count", Pod: initImages(pod("cache:1"), "web:1"), Nodes: rt.Nodes{node("a").Images(1000*mega, "web:1")}, Want: rt.Want{"a": "49 raw 49"}},
		{Name: "image volumes count", Pod: imageVolume(pod("cache:1"), "web:1"), Nodes: rt.Nodes{node("a").Images(1000*mega, "web:1")}, Want: rt.Want{"a": "49 raw 49"}},
		{Name: "in 1.36 they raise nothing", Version: compat.V36, Pod: imageVolume(pod("cache:1"), "web:1"), Nodes: rt.Nodes{node("a").Images(1000*mega, "web:1")}, Want: rt.Want{"a": "100 raw 100"}},
		{Name: "one that no node has raises it", Pod: imageVolume(pod("web:1"), "cache:1"), Nodes: rt.Nodes{node("a").Images(1000*mega, "web:1")}, Want: rt.Want{"a": "49 raw 49"}},
		{Name: "in 1.36 it doesn't", Version: compat.V36, Pod: imageVolume(pod("web:1"), "cache:1"), Nodes: rt.Nodes{node("a").Images(1000*mega, "web:1")}, Want: rt.Want{"a": "100 raw 100"}},
		{Name: "volumes of another kind don't", Pod: pod("cache:1").Volume("v", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}), Want: skip},
	}}.Score(t)
	rt.Table{Plugin: plugin, Nodes: two, Cases: []rt.Case{
		{Name: "it rejects nothing", Pod: pod("web:1"), Want: rt.Want{rt.All: rt.OnlyScores}},
	}}.Filter(t)
}

// A name without a tag means the tag latest; a port isn't a tag.
func TestNames(t *testing.T) {
	one := func(name, of, on string, want string) rt.Case {
		return rt.Case{Name: name, Pod: pod(of), Nodes: rt.Nodes{testkit.Node("n").Images(1000*mega, on)}, Want: rt.Want{"n": want}}
	}
	rt.Table{Plugin: plugin, Cases: []rt.Case{
		one("with a tag", "web:1", "web:1", "100 raw 100"),
		one("with another tag", "web:1", "web:2", rt.Skip),
		one("without a tag", "web", "web:latest", "100 raw 100"),
		one("without a tag, from a registry", "registry/web", "registry/web:latest", "100 raw 100"),
		one("without a tag, from a registry with a port", "registry:5000/web", "registry:5000/web:latest", "100 raw 100"),
		one("with a tag, from a registry with a port", "registry:5000/web:1", "registry:5000/web:1", "100 raw 100"),
		one("with a digest", "web@sha256:abc", "web@sha256:abc", "100 raw 100"),
		{Name: "under any of its names", Pod: pod("web:stable"), Nodes: rt.Nodes{testkit.Node("n").Images(1000*mega, "web:1", "web:stable")}, Want: rt.Want{"n": "100 raw 100"}},
	}}.Score(t)
}

func TestSignature(t *testing.T) {
	change := func(images ...string) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Containers = pod(images...).Spec.Containers }
	}
	x := rt.Signatures{Plugin: plugin, Nodes: rt.Nodes{testkit.Node("n").Images(100*mega, "web:latest").Images(100*mega, "db:1")}}
	x.Pod = func() *testkit.PodBuilder { return pod("web", "cache:1") }
	x.Cases = []rt.Change{
		rt.Differs("name, label", func(p *testkit.PodBuilder) { p.Name = "q"; p.Label("app", "web") }, rt.Same),
		rt.Differs("the tag spelt out", change("web:latest", "cache:1"), rt.Same),
		rt.Differs("an image that no node has", change("web", "cache:2"), rt.Same),
		rt.Differs("an image that some node has", change("db:1", "cache:1"), rt.Local),
		rt.Differs("one more of them", change("web", "db:1"), rt.Local),
		rt.Differs("none of them", change("cache:1", "cache:2"), rt.Local),
		rt.Differs("number of containers", change("web", "cache:1", "cache:2"), rt.Local),
		rt.Differs("an init container", func(p *testkit.PodBuilder) { initImages(p, "cache:2") }, rt.Local),
		rt.Differs("an image volume", func(p *testkit.PodBuilder) { imageVolume(p, "db:1") }, rt.Local),
	}
	x.Run(t)
	volume := func(p *testkit.PodBuilder) { imageVolume(p, "cache:2") }
	for v, part := range map[compat.Version]rt.Part{compat.V36: rt.Same, compat.V37: rt.Local} {
		x.Version, x.Cases = v, []rt.Change{rt.Differs("an image volume that no node has, in "+v.String(), volume, part)}
		x.Run(t)
	}
	// Without a known image the number of containers says nothing.
	x.Pod = func() *testkit.PodBuilder { return pod("cache:1") }
	x.Cases = []rt.Change{rt.Differs("none known: number of containers", change("cache:1", "cache:2"), rt.Same)}
	x.Run(t)
}
