package extender

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestANodeIsEncodedOnceForEachVersion asks for the encoding of a node twice, then for that of
// its next version, and forgets the first.
func TestANodeIsEncodedOnceForEachVersion(t *testing.T) {
	e := &nodeEncodings{}
	of := func(n *v1.Node) *byte {
		raw, err := e.of(n)
		if err != nil {
			t.Fatal(err)
		}
		return &raw[0]
	}
	kept := func() (n int) {
		e.byNode.Range(func(any, any) bool { n++; return true })
		return n
	}
	before := testkit.Node("n").Obj()
	first := of(before)
	if of(before) != first {
		t.Error("the same version is encoded twice")
	}
	after := before.DeepCopy()
	after.Labels["new"] = "label"
	if of(after) == first || kept() != 2 {
		t.Errorf("%d encodings are kept, want those of two versions", kept())
	}
	runtime.KeepAlive(before)
	before = nil
	for kept() > 1 { // a leak ends with the test's deadline
		runtime.GC()
	}
	runtime.KeepAlive(after)
}

// largeNodes are nodes of some 10 KiB.
func largeNodes(count int) (out []*v1.Node) {
	for i := range count {
		n := testkit.Node(fmt.Sprint("n", i))
		for k := range 50 {
			n.Images(1<<30, fmt.Sprintf("registry.example/team-%d/an-image-with-a-long-name@sha256:%x", k, sha256.Sum256([]byte(fmt.Sprint(i, k)))), fmt.Sprintf("registry.example/team-%d/an-image-with-a-long-name:v%d", k, i))
		}
		out = append(out, n.Obj())
	}
	return out
}

// echo answers that the extender allows all nodes that it is sent.
func echo(t testing.TB, nodes []*v1.Node) string {
	list := &v1.NodeList{}
	for _, n := range nodes {
		list.Items = append(list.Items, *n)
	}
	raw, err := json.Marshal(extenderv1.ExtenderFilterResult{Nodes: list})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestAnswersWithNodesAreReadByName counts what reading one allocates: of each node its name, and
// not the fifty images.
func TestAnswersWithNodesAreReadByName(t *testing.T) {
	nodes := largeNodes(300)
	w := newWorld(t, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f"}, echo(t, nodes))
	allocs := testing.AllocsPerRun(3, func() {
		if allowed, failed, err := w.chain.extenders[0].Filter(t.Context(), asked(false), nodes); err != nil || len(allowed) != len(nodes) || len(failed) != 0 {
			t.Fatalf("%d nodes are allowed (%v)", len(allowed), err)
		}
	})
	if most := float64(10*len(nodes) + 500); allocs > most {
		t.Errorf("an answer with %d nodes takes %.0f allocations, want %.0f at most", len(nodes), allocs, most)
	}
}

// BenchmarkReadWholeNodes reads the answer of an extender that sends 1,000 nodes back.
func BenchmarkReadWholeNodes(b *testing.B) {
	nodes := largeNodes(1000)
	w := newWorld(b, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f"}, echo(b, nodes))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := w.chain.extenders[0].Filter(b.Context(), asked(false), nodes); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAskAboutWholeNodes asks an extender that doesn't know the nodes about 5,000 of some
// 10 KiB.
func BenchmarkAskAboutWholeNodes(b *testing.B) {
	w := newWorld(b, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f"}, `{}`)
	all := largeNodes(5000)
	pod := asked(false)
	for b.Loop() {
		if a := w.chain.Ask(b.Context(), step.Consult{Pod: pod}, all); a.Err != nil {
			b.Fatal(a.Err)
		}
	}
	b.SetBytes(int64(len(w.said.sent)))
}
