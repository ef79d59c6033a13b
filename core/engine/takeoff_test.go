package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// claimants draws a cluster with devices and pods that claim some: each is on a node, whether or not it
// has devices there.
func claimants(t *rapid.T) (*cluster.State, []*cluster.Pod) {
	s := cluster.New(cluster.NewSchema())
	var nodes []*v1.Node
	for _, name := range testkit.Names("n", 3) {
		n := testkit.Node(name).Alloc("cpu", "64", "memory", "64Gi", "pods", "110").Obj()
		nodes = append(nodes, n)
		s.SetNode(s.Schema.ParseNode(n, ""))
	}
	published := testkit.RandomDevices(t, nodes)
	for _, o := range append(published, testkit.RandomDeviceClaims(t, published)...) {
		s.SetObject(o)
	}
	e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{Seed: 7}))
	var pods []*cluster.Pod
	for _, name := range []string{"p0", "p1", "new0", "new1", "new2"} {
		b := testkit.Pod(name)
		testkit.AddDeviceClaims(t, &b.Pod)
		if testkit.Uniform(t, 3, "extended") == 0 {
			testkit.AddExtendedResources(t, &b.Pod)
		}
		p := s.Schema.ParsePod(b.Obj())
		if n := s.Node(cluster.NodeIndex(testkit.Uniform(t, 3, "on"))); e.FitsOn(e.Class(p), n) || testkit.Uniform(t, 4, "place") == 0 {
			e.PlaceOn(p, n.Index)
			pods = append(pods, p)
		}
	}
	return s, pods
}

// TestPropertyTakenOffPodsGiveTheirDevicesBack takes pods off their nodes, in any order: claims and free
// devices are those of a cluster in which the pods have ended (withoutPods). Rolled back, the
// state has the very same objects as before.
func TestPropertyTakenOffPodsGiveTheirDevicesBack(t *testing.T) {
	freed := 0
	rapid.Check(t, func(t *rapid.T) {
		s, pods := claimants(t)
		before := dump(s)
		e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{Seed: 7}))
		mark := s.Mark()
		var gone []*cluster.Pod
		for _, p := range pods {
			if rapid.Bool().Draw(t, "goes") {
				gone = slices.Insert(gone, testkit.Uniform(t, len(gone)+1, "when"), p)
			}
		}
		want := withoutPods(s, gone)
		for _, p := range gone {
			freed += len(e.TakeOff(p))
			if again := e.TakeOff(p); again != nil {
				t.Fatalf("a pod on no node has given back %v", again)
			}
		}
		if got, want := devicesText(s), devicesText(want); got != want {
			t.Fatalf("without %d pods:\n%s\nwant:\n%s", len(gone), got, want)
		}
		s.Rollback(mark)
		if got := dump(s); got != before {
			t.Fatalf("rolled back:\n%s\nbefore:\n%s", got, before)
		}
	})
	if freed == 0 {
		t.Error("no pod had anything to give back")
	}
}

// withoutPods returns a new state with the objects of another as they are when pods have ended.
func withoutPods(s *cluster.State, gone []*cluster.Pod) *cluster.State {
	out := cluster.New(s.Schema)
	s.Nodes(func(n *cluster.Node) { out.SetNode(n.NodeInfo) })
	for _, o := range s.Objects() {
		was, ok := o.(*resourcev1.ResourceClaim)
		if !ok {
			out.SetObject(o)
			continue
		}
		if slices.ContainsFunc(gone, func(p *cluster.Pod) bool { return s.ClaimsDevices(p) && s.ExtendedResourceClaim(p) == was }) {
			continue
		}
		c := was.DeepCopy()
		c.Status.ReservedFor = slices.DeleteFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			ends := func(p *cluster.Pod) bool { return p.UID == r.UID && slices.Contains(s.ClaimsOf(p), was) }
			return slices.ContainsFunc(gone, ends)
		})
		released := len(c.Status.ReservedFor) < len(was.Status.ReservedFor)
		if released && len(c.Status.ReservedFor) == 0 {
			c.Status = resourcev1.ResourceClaimStatus{}
		}
		if released && slices.ContainsFunc(gone, func(p *cluster.Pod) bool { return metav1.IsControlledBy(c, p.Object) }) {
			c.DeletionTimestamp = nil
		}
		out.SetObject(c)
	}
	return out
}

// devicesText writes claims, and what is free of the devices of each node.
func devicesText(s *cluster.State) string {
	var b strings.Builder
	for _, o := range s.Objects() {
		if c, ok := o.(*resourcev1.ResourceClaim); ok {
			raw, _ := json.Marshal(c)
			fmt.Fprintf(&b, "%s\n", raw)
		}
	}
	s.Nodes(func(n *cluster.Node) { fmt.Fprintf(&b, "%s %x\n", n.Name, s.Devices().Digest(int32(n.Index))) })
	return b.String()
}
