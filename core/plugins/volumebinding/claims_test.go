package volumebinding_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// What keeps a pod off every node before any is looked at.
func TestClaimsThatCannotBeUsed(t *testing.T) {
	claim := testkit.Claim
	rt.Table{Plugin: plugin, Nodes: nodes(), Objects: classes(), Cases: []rt.Case{
		{Name: "no volumes", Pod: pod(), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "volumes of another kind", Pod: pod().Volume("v", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "no such claim", Pod: pod("c"), Want: everywhere(`persistentvolumeclaim "c" not found`)},
		{Name: "no such claim in the namespace", Pod: pod("c").Namespaced("other"), Objects: rt.Objects{claim("c", "fast").Obj()}, Want: everywhere(`persistentvolumeclaim "c" not found`)},
		{Name: "an ephemeral one isn't made yet", Pod: pod().Ephemeral("v"), Want: everywhere(`waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"`)},
		{Name: "an ephemeral one of another pod", Pod: pod().Ephemeral("v"), Objects: rt.Objects{claim("p-v", "fast").MadeFor("q").Obj()}, Want: everywhere(`PVC default/p-v was not created for pod default/p (pod is not owner)`)},
		{Name: "an ephemeral one", Pod: pod().Ephemeral("v"), Objects: rt.Objects{claim("p-v", "fast").MadeFor("p").Obj()}, Want: both},
		{Name: "a claim named like it is anybody's", Pod: pod("p-v"), Objects: rt.Objects{claim("p-v", "fast").MadeFor("q").Obj()}, Want: both},
		{Name: "its volume is lost", Pod: pod("c"), Objects: rt.Objects{claim("c", "fast").Bound("pv").With(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost }).Obj()},
			Want: everywhere(`persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"`)},
		{Name: "it is being deleted", Pod: pod("c"), Objects: rt.Objects{claim("c", "fast").With(func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }).Obj()},
			Want: everywhere(`persistentvolumeclaim "c" is being deleted`)},
		{Name: "it doesn't wait for its pod, and isn't bound", Pod: pod("c"), Objects: rt.Objects{claim("c", "immediate").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "its class doesn't exist", Pod: pod("c"), Objects: rt.Objects{claim("c", "absent").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "it has no class", Pod: pod("c"), Objects: rt.Objects{claim("c", "").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "it names a volume and isn't bound completely", Pod: pod("c"), Objects: rt.Objects{claim("c", "fast").With(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }).Obj()},
			Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
		{Name: "its class doesn't say when to bind", Pod: pod("c"), Objects: rt.Objects{claim("c", "unset").Obj()}, Want: everywhere(`VolumeBindingMode not set for StorageClass "unset"`)},
		{Name: "two that aren't bound, one for want of a mode", Pod: pod("i", "c"), Objects: rt.Objects{claim("i", "immediate").Obj(), claim("c", "unset").Obj()}, Want: everywhere(`VolumeBindingMode not set for StorageClass "unset"`)},
		{Name: "two for want of a mode", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "unset").Obj(), claim("d", "unset2").Obj(),
			testkit.Class("unset2", "csi.example").With(func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }).Obj()}, Want: everywhere(`VolumeBindingMode not set for StorageClass "unset"`)},
		{Name: "one that doesn't exist after one for want of a mode", Pod: pod("c", "d"), Objects: rt.Objects{claim("c", "unset").Obj()}, Want: everywhere(`persistentvolumeclaim "d" not found`)},
		{Name: "one that isn't bound beside a delayed one", Pod: pod("c", "i"), Objects: rt.Objects{claim("c", "fast").Obj(), claim("i", "immediate").Obj()}, Want: everywhere(`pod has unbound immediate PersistentVolumeClaims`)},
	}}.Filter(t)
}

func TestSignature(t *testing.T) {
	block := v1.PersistentVolumeBlock
	gold, none := "gold", ""
	selects := func(v string) func(*v1.PersistentVolumeClaim) {
		return func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": v}}
		}
	}
	unreadable := func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
	}
	spec := func(name string, change func(*v1.PersistentVolumeClaim)) runtime.Object {
		return testkit.Claim(name, "fast").With(change).Obj()
	}
	ebs := func(name string) runtime.Object {
		return testkit.Volume(name, "").Source(v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-" + name}}).In(zone, "a").Obj()
	}
	local := func(name string) runtime.Object {
		return testkit.Volume(name, "").Source(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}}).In(zone, "a").Obj()
	}
	bound := func(claim, volume string) runtime.Object { return testkit.Claim(claim, "fast").Bound(volume).Obj() }
	objects := append(classes(),
		testkit.Claim("c", "fast").Obj(), testkit.Claim("like-c", "fast").Obj(), testkit.Claim("static", "static").Obj(), testkit.Claim("large", "fast").Size("2Gi").Obj(),
		testkit.Claim("many", "fast").Modes(v1.ReadWriteMany).Obj(), testkit.Claim("two-modes", "fast").Modes(v1.ReadWriteOnce, v1.ReadWriteMany).Obj(),
		spec("block", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }),
		spec("gold", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold }),
		spec("no-attributes", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &none }),
		spec("sizeless", func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }), testkit.Claim("zero", "fast").Size("0").Obj(),
		spec("selects-v", selects("v")), spec("selects-w", selects("w")), spec("unreadable", unreadable),
		spec("selects-all", func(c *v1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }),
		testkit.Claim("selected-a", "fast").SelectedNode("a").Obj(), testkit.Claim("selected-b", "fast").SelectedNode("b").Obj(), testkit.Claim("selected-none", "fast").SelectedNode("").Obj(),
		testkit.Claim("named", "fast").Obj(), testkit.Volume("pv-named", "fast").ClaimedBy("named", "").Obj(),
		testkit.Claim("named2", "fast").Obj(), testkit.Volume("pv-named2", "fast").ClaimedBy("named2", "").Obj(),
		testkit.Claim("immediate", "immediate").Obj(), testkit.Claim("immediate2", "immediate").Obj(),
		bound("any", "pv-any"), testkit.Volume("pv-any", "fast").Obj(), bound("in-a", "pv-a"), testkit.Volume("pv-a", "fast").In(zone, "a").Obj(),
		bound("in-a2", "pv-a2"), testkit.Volume("pv-a2", "fast").In(zone, "a").Obj(), bound("in-b", "pv-b"), testkit.Volume("pv-b", "fast").In(zone, "b").Obj(),
		bound("gone", "pv-gone"), bound("gone2", "pv-gone2"), bound("ebs", "pv-ebs"), ebs("pv-ebs"), bound("ebs2", "pv-ebs2"), ebs("pv-ebs2"),
		bound("local", "pv-local"), local("pv-local"),
	)
	to := func(claims ...string) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { p.Spec.Volumes = nil; p.Uses(claims...) }
	}
	from := func(claims ...string) rt.Signatures {
		return rt.Signatures{Plugin: plugin, Nodes: nodes(), Objects: objects, Pod: func() *testkit.PodBuilder { return pod(claims...) }}
	}
	x := from("c")
	x.Cases = []rt.Change{
		rt.Differs("delayed: a like claim", to("like-c"), rt.Same),
		rt.Differs("delayed: label, request", func(p *testkit.PodBuilder) { p.Label("app", "web").Req("cpu", "1") }, rt.Same),
		rt.Differs("delayed: class", to("static"), rt.Local),
		rt.Differs("delayed: size", to("large"), rt.Local),
		rt.Differs("delayed: no size", to("sizeless"), rt.Local),
		rt.Differs("delayed: access mode", to("many"), rt.Local),
		rt.Differs("delayed: one more access mode", to("two-modes"), rt.Local),
		rt.Differs("delayed: volume mode", to("block"), rt.Local),
		rt.Differs("delayed: attributes class", to("gold"), rt.Local),
		rt.Differs("delayed: no attributes class, spelt out", to("no-attributes"), rt.Same),
		rt.Differs("delayed: selector", to("selects-v"), rt.Local),
		rt.Differs("delayed: an empty selector", to("selects-all"), rt.Local),
		rt.Differs("delayed: selected node", to("selected-a"), rt.Local),
		rt.Differs("delayed: a volume names it", to("named"), rt.Local),
		rt.Differs("delayed: two like claims", to("c", "like-c"), rt.Local),
		rt.Differs("delayed: no claim", to(), rt.Both),
		rt.Differs("bound", to("any"), rt.Local),
		rt.Differs("not usable", to("missing"), rt.Both),
	}
	x.Run(t)
	for name, c := range map[string]struct {
		from, to []string
		tells    rt.Part
	}{
		"bound: to volumes in one zone":          {[]string{"in-a"}, []string{"in-a2"}, rt.Same},
		"bound: to volumes in two zones":         {[]string{"in-a"}, []string{"in-b"}, rt.Local},
		"bound: to one that any node may have":   {[]string{"in-a"}, []string{"any"}, rt.Local},
		"bound: to volumes that don't exist":     {[]string{"gone"}, []string{"gone2"}, rt.Same},
		"bound: to one that exists and one not":  {[]string{"any"}, []string{"gone"}, rt.Local},
		"bound: in-tree":                         {[]string{"ebs"}, []string{"ebs2"}, rt.Local},
		"bound: in-tree or not":                  {[]string{"in-a"}, []string{"ebs"}, rt.Local},
		"bound: local":                           {[]string{"in-a"}, []string{"local"}, rt.Same},
		"bound: one and two":                     {[]string{"any"}, []string{"any", "any"}, rt.Local},
		"one claim twice, or two like claims":    {[]string{"c", "c"}, []string{"c", "like-c"}, rt.Local},
		"selectors":                              {[]string{"selects-v"}, []string{"selects-w"}, rt.Local},
		"a selector that can't be read":          {[]string{"selects-v"}, []string{"unreadable"}, rt.Local},
		"selected nodes":                         {[]string{"selected-a"}, []string{"selected-b"}, rt.Local},
		"an empty selected node":                 {[]string{"c"}, []string{"selected-none"}, rt.Local},
		"no size and size zero":                  {[]string{"sizeless"}, []string{"zero"}, rt.Local},
		"named by volumes":                       {[]string{"named"}, []string{"named2"}, rt.Local},
		"not usable for one reason":              {[]string{"immediate"}, []string{"immediate2"}, rt.Same},
		"not usable for two reasons":             {[]string{"immediate"}, []string{"missing"}, rt.Group},
		"not usable, and what else the pod uses": {[]string{"immediate", "c"}, []string{"immediate", "large"}, rt.Same},
	} {
		x := from(c.from...)
		x.Cases = []rt.Change{rt.Differs(name, to(c.to...), c.tells)}
		x.Run(t)
	}
}
