package volumebinding_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// Delayed claims take the smallest available volume that suits them.
func TestVolumesToBind(t *testing.T) {
	claim := func() *testkit.ClaimBuilder { return testkit.Claim("c", "static").Size("2Gi") }
	inA := func() *testkit.VolumeBuilder { return testkit.Volume("pv", "static").Size("2Gi").In(zone, "a") }
	block := v1.PersistentVolumeBlock
	gold := "gold"
	one := func(name string, c *testkit.ClaimBuilder, want rt.Want, volumes ...*testkit.VolumeBuilder) rt.Case {
		out := rt.Case{Name: name, Pod: pod("c"), Objects: rt.Objects{c.Obj()}, Want: want}
		for _, v := range volumes {
			out.Objects = append(out.Objects, v.Obj())
		}
		return out
	}
	asBlock := func(v *v1.PersistentVolume) { v.Spec.VolumeMode = &block }
	asFiles := func(v *v1.PersistentVolume) { m := v1.PersistentVolumeFilesystem; v.Spec.VolumeMode = &m }
	inClass := func(v *v1.PersistentVolume) { v.Spec.VolumeAttributesClassName = &gold }
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: classes(), Cases: []rt.Case{
		one("none", claim(), nowhere),
		one("one in zone a", claim(), onlyA, inA()),
		one("one that any node may have", claim(), both, testkit.Volume("pv", "static").Size("2Gi")),
		one("one on a host", claim(), onlyA, testkit.Volume("pv", "static").Size("2Gi").In(hostname, "a")),
		one("one on a host and in a zone that it isn't in", claim(), nowhere, inA().With(func(v *v1.PersistentVolume) {
			term := &v.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
			term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{Key: hostname, Operator: v1.NodeSelectorOpIn, Values: []string{"b"}})
		})),
		one("a larger one", claim(), onlyA, inA().Size("3Gi")),
		one("a smaller one", claim(), nowhere, inA().Size("1Gi")),
		one("of another class", claim(), nowhere, inA().With(func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "fast" })),
		one("with all access modes", claim().Modes(v1.ReadWriteOnce), onlyA, inA().Modes(v1.ReadOnlyMany, v1.ReadWriteOnce)),
		one("without one of the access modes", claim().Modes(v1.ReadWriteOnce, v1.ReadWriteMany), nowhere, inA().Modes(v1.ReadWriteOnce)),
		one("of another volume mode", claim(), nowhere, inA().With(asBlock)),
		one("of another volume mode, the other way", claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }), nowhere, inA()),
		one("of the same volume mode", claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }), onlyA, inA().With(asBlock)),
		one("of the default volume mode, spelt out", claim(), onlyA, inA().With(asFiles)),
		one("of another attributes class", claim(), nowhere, inA().With(inClass)),
		one("of the same attributes class", claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold }), onlyA, inA().With(inClass)),
		one("selected by labels", claim().With(func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": "v"}}
		}), onlyA, inA().Label("k", "v")),
		one("not selected by labels", claim().With(func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": "v"}}
		}), nowhere, inA()),
		one("a selector that can't be read", claim().With(func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
		}), nowhere, inA()),
		one("released and not made available", claim(), nowhere, inA().Phase(v1.VolumeReleased)),
		one("being deleted", claim(), nowhere, inA().With(func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} })),
		one("for another claim", claim(), nowhere, inA().ClaimedBy("d", "")),

		one("for this claim by name", claim(), onlyA, inA().ClaimedBy("c", "")),
		one("for this claim by UID", claim(), onlyA, inA().ClaimedBy("c", "claim-c")),
		one("for an earlier claim of the name", claim(), nowhere, inA().ClaimedBy("c", "claim-earlier")),
		one("for a claim of the name in another namespace", claim(), nowhere, inA().ClaimedBy("c", "").With(func(v *v1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "other" })),
		one("for this claim, of another class", claim(), nowhere, inA().ClaimedBy("c", "").With(func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "fast" })),
		one("for this claim, and too small", claim(), nowhere, inA().Size("1Gi").ClaimedBy("c", "")),
		one("for this claim, and not available", claim(), onlyA, inA().Phase(v1.VolumeReleased).ClaimedBy("c", "")),
		one("for this claim, without its access modes", claim().Modes(v1.ReadWriteMany), onlyA, inA().ClaimedBy("c", "")),
		one("for this claim, and elsewhere than a free one", claim(), onlyA, inA().ClaimedBy("c", ""), testkit.Volume("pw", "static").Size("2Gi")),
		one("a free one, where that for this claim is too small", claim(), both, inA().Size("1Gi").ClaimedBy("c", ""), testkit.Volume("pw", "static").Size("2Gi")),
		{Name: "a claim that says no size takes any", Pod: pod("c"), Objects: rt.Objects{claim().With(func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }).Obj(), inA().Obj()}, Want: onlyA},

		{Name: "two claims, one volume", Pod: pod("c", "d"), Objects: rt.Objects{claim().Obj(), testkit.Claim("d", "static").Size("2Gi").Obj(), inA().Obj()}, Want: nowhere},
		{Name: "two claims, two volumes", Pod: pod("c", "d"), Objects: rt.Objects{claim().Obj(), testkit.Claim("d", "static").Size("2Gi").Obj(), inA().Obj(), testkit.Volume("pw", "static").Size("2Gi").Obj()}, Want: onlyA},
		{Name: "the smaller claim takes the smaller volume", Pod: pod("c", "d"), Objects: rt.Objects{testkit.Claim("c", "static").Size("1Gi").Obj(), testkit.Claim("d", "static").Size("5Gi").Obj(),
			inA().Size("5Gi").Obj(), testkit.Volume("pw", "static").Size("1Gi").Obj()}, Want: onlyA},
		{Name: "whatever their order in the pod", Pod: pod("d", "c"), Objects: rt.Objects{testkit.Claim("c", "static").Size("1Gi").Obj(), testkit.Claim("d", "static").Size("5Gi").Obj(),
			inA().Size("5Gi").Obj(), testkit.Volume("pw", "static").Size("6Gi").Obj()}, Want: onlyA},
		{Name: "one claim in two volumes of the pod is bound twice", Pod: pod("c").Volume("again", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}),
			Objects: rt.Objects{claim().Obj(), inA().Obj()}, Want: nowhere},
	}}.Filter(t)
}
