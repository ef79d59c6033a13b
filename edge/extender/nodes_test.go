package extender

import (
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
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

// BenchmarkAskAboutWholeNodes asks an extender that doesn't know the nodes about 5,000 of some
// 10 KiB.
func BenchmarkAskAboutWholeNodes(b *testing.B) {
	w := newWorld(b, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f"}, `{}`)
	var all []*v1.Node
	for i := range 5000 {
		n := testkit.Node(fmt.Sprint("n", i))
		for k := range 50 {
			n.Images(1<<30, fmt.Sprintf("registry.example/team-%d/an-image-with-a-long-name@sha256:%064d", k, i), fmt.Sprintf("registry.example/team-%d/an-image-with-a-long-name:v%d", k, i))
		}
		all = append(all, n.Obj())
	}
	pod := asked(false)
	for b.Loop() {
		if a := w.chain.Ask(b.Context(), step.Consult{Pod: pod}, all); a.Err != nil {
			b.Fatal(a.Err)
		}
	}
	b.SetBytes(int64(len(w.said.sent)))
}
