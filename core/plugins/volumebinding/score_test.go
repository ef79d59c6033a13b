package volumebinding_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/volumebinding"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

var scoring = rt.Is(volumebinding.NewScoring(volumebinding.DefaultShape()))

// Storage of class fast is left in zones a and b, and of class pool in zone a.
func published(inA, inB string, more ...*storagev1.CSIStorageCapacity) rt.Objects {
	out := append(classes(), testkit.Class("pool", "csi.example").Obj(), testkit.CSIDriver("csi.example", true),
		testkit.Capacity("m-a", "fast", inA, zone, "a"), testkit.Capacity("m-b", "fast", inB, zone, "b"), testkit.Capacity("m-pool", "pool", "10Gi", zone, "a"))
	for _, c := range more {
		out = append(out, c)
	}
	return out
}

// TestScoreOfCapacities: nodes where the claims take the smaller part of the driver's storage
// score more.
func TestScoreOfCapacities(t *testing.T) {
	claim := func(name, class, size string) *v1.PersistentVolumeClaim {
		return testkit.Claim(name, class).Size(size).Obj()
	}
	limited := func(name, left, largest string) *storagev1.CSIStorageCapacity {
		c := testkit.Capacity(name, "fast", left, zone, "a")
		q := resource.MustParse(largest)
		c.MaximumVolumeSize = &q
		return c
	}
	unmeasured := limited("a-first", "1Gi", "9Gi")
	unmeasured.Capacity = nil
	rt.Table{Plugin: scoring, Scores: true, Nodes: nodes(), Cases: []rt.Case{
		{Name: "no claims", Pod: pod(), Objects: published("10Gi", "5Gi"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "one claim", Pod: pod("c"), Objects: append(published("10Gi", "5Gi"), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "80", "b": "60"}},
		{Name: "all that is left", Pod: pod("c"), Objects: append(published("10Gi", "2Gi"), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "80", "b": "0"}},
		{Name: "less is left than is needed", Pod: pod("c"), Objects: append(published("10Gi", "1Gi"), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "80", "b": noSpace}},
		{Name: "two claims of a class take of one capacity", Pod: pod("c", "d"), Objects: append(published("10Gi", "5Gi"), claim("c", "fast", "2Gi"), claim("d", "fast", "1Gi")), Want: rt.Want{"a": "70", "b": "40"}},
		{Name: "two claims that need more together than is left", Pod: pod("c", "d"), Objects: append(published("10Gi", "5Gi"), claim("c", "fast", "3Gi"), claim("d", "fast", "3Gi")), Want: rt.Want{"a": "40", "b": "0"}},
		{Name: "two classes count alike, rounded", Pod: pod("c", "d"), Objects: append(published("10Gi", "5Gi"), claim("c", "fast", "1Gi"), claim("d", "pool", "2560Mi")), Want: rt.Want{"a": "83", "b": noSpace}},
		{Name: "of several capacities the first by name counts", Pod: pod("c"), Objects: append(published("10Gi", "5Gi", testkit.Capacity("a-first", "fast", "4Gi", zone, "a")), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "50", "b": "60"}},
		{Name: "of several capacities the first that suffices", Pod: pod("c"), Objects: append(published("10Gi", "5Gi", testkit.Capacity("a-first", "fast", "1Gi", zone, "a")), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "80", "b": "60"}},
		{Name: "the largest volume suffices and the storage doesn't", Pod: pod("c"), Objects: append(published("10Gi", "5Gi", limited("a-first", "1Gi", "9Gi")), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "0", "b": "60"}},
		{Name: "only the largest volume is known", Pod: pod("c"), Objects: append(published("10Gi", "5Gi", unmeasured), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "0", "b": "60"}},
		{Name: "a driver that publishes nothing", Pod: pod("c"), Objects: append(published("10Gi", "5Gi"), testkit.CSIDriver("csi.example", false), claim("c", "fast", "2Gi")), Want: rt.Want{rt.All: "0"}},
		{Name: "a claim without a size", Pod: pod("c"), Objects: append(published("10Gi", "5Gi"), testkit.Claim("c", "fast").With(func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }).Obj()), Want: rt.Want{rt.All: "0"}},
		{Name: "a claim of size zero", Pod: pod("c"), Objects: append(published("10Gi", "5Gi"), claim("c", "fast", "0")), Want: rt.Want{rt.All: "100"}},
		{Name: "another shape", Plugin: rt.Is(volumebinding.NewScoring([]framework.ShapePoint{{Utilization: 0, Score: 0}, {Utilization: 20, Score: 10}, {Utilization: 40, Score: 5}})),
			Pod: pod("c"), Objects: append(published("10Gi", "5Gi"), claim("c", "fast", "2Gi")), Want: rt.Want{"a": "100", "b": "50"}},
		{Name: "no scoring", Plugin: plugin, Pod: pod("c"), Objects: append(published("10Gi", "5Gi"), claim("c", "fast", "2Gi")), Want: rt.Want{rt.All: "0"}},
	}}.Score(t)
}

// TestScoreOfVolumes: nodes with volumes of which the claims take the smaller part score more, and
// what else is to be provisioned doesn't count.
func TestScoreOfVolumes(t *testing.T) {
	volume := func(name, class, size, in string) *testkit.VolumeBuilder {
		return testkit.Volume(name, class).Size(size).In(zone, in)
	}
	claim := func(name, class string) *v1.PersistentVolumeClaim { return testkit.Claim(name, class).Obj() }
	halves := func(more ...*testkit.VolumeBuilder) rt.Objects {
		out := append(published("2Gi", "2Gi"), claim("c", "static"), claim("d", "static"), claim("e", "fast"),
			volume("pv-a", "static", "2Gi", "a").Obj(), volume("pv-b", "static", "4Gi", "b").Obj())
		for _, v := range more {
			out = append(out, v.Obj())
		}
		return out
	}
	rt.Table{Plugin: scoring, Scores: true, Nodes: nodes(), Cases: []rt.Case{
		{Name: "one claim", Pod: pod("c"), Objects: halves(), Want: rt.Want{"a": "50", "b": "75"}},
		{Name: "a bound claim", Pod: pod("f"), Objects: append(halves(), testkit.Claim("f", "static").Bound("pv-a").Obj()), Want: rt.Want{"a": "0", "b": wrongNode}},
		{Name: "two claims of a class", Pod: pod("c", "d"), Objects: halves(volume("pv-a2", "static", "6Gi", "a"), volume("pv-b2", "static", "2Gi", "b")), Want: rt.Want{"a": "75", "b": "67"}},
		{Name: "two classes", Pod: pod("c", "e"), Objects: halves(volume("pv-fast", "fast", "1Gi", "a"), volume("pv-fast2", "fast", "10Gi", "b")), Want: rt.Want{"a": "25", "b": "83"}},
		{Name: "beside one that is to be provisioned", Pod: pod("c", "e"), Objects: halves(), Want: rt.Want{"a": "50", "b": "75"}},
	}}.Score(t)
}

// TestScoreSignature: claims that are scored under different classes are no like claims.
func TestScoreSignature(t *testing.T) {
	annotated := func(name, spec string) *v1.PersistentVolumeClaim {
		return testkit.Claim(name, spec).Annotation(v1.BetaStorageClassAnnotation, "fast").Obj()
	}
	x := rt.Signatures{Plugin: scoring, Nodes: nodes(), Objects: append(classes(), annotated("c", "fast"), annotated("d", "static")), Pod: func() *testkit.PodBuilder { return pod("c") }}
	to := func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Uses("d") }
	x.Cases = []rt.Change{rt.Differs("the class of the spec", to, rt.Local)}
	x.Run(t)
	x.Plugin = plugin
	x.Cases = []rt.Change{rt.Differs("the class of the spec, without scores", to, rt.Same)}
	x.Run(t)
}
