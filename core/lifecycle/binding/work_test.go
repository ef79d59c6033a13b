package binding_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestWorkOfManyThatWait has members of a group wait for permission, which are then allowed all at once, or
// one after the other, or are gone: each wait is looked at a few times, however many there are.
func TestWorkOfManyThatWait(t *testing.T) {
	for _, how := range []string{"at once", "one by one", "gone"} {
		for _, n := range []int{250, 500, 1000} {
			w := newWorld()
			w.Node(testkit.Node("large").Alloc("cpu", "10000", "memory", "8Gi", "pods", "10000").Obj())
			for i := range n {
				w.place(fmt.Sprint("m", i), "large", "", "wait", func(p *testkit.PodBuilder) { p.PodGroup("gang") })
			}
			uid := func(i int) types.UID { return types.UID(fmt.Sprint("pod-m", i)) }
			switch how {
			case "at once":
				allowed := 0
				w.plugin.waiting.EachMember(*w.State.PodOn(uid(0)).Group, func(x framework.WaitingPod) { allowed++; x.Allow("gang") })
				if allowed != n {
					t.Errorf("%d of %d members wait", allowed, n)
				}
				w.m.Resolve(w.Turn)
			case "one by one":
				for i := range n {
					w.plugin.waiting.Get(uid(n - 1 - i)).Allow("gang")
					w.m.Resolve(w.Turn)
				}
			case "gone":
				for i := range n {
					w.gone(uid(n - 1 - i))
				}
			}
			if binds := len(w.Turn.Ready.Binds); how != "gone" && binds != n {
				t.Errorf("%s: %d of %d are bound", how, binds, n)
			}
			if looked := w.m.Looked(); looked > 4*n {
				t.Errorf("%s: %d waits were looked at for %d, want at most %d", how, looked, n, 4*n)
			}
			if broken := w.broken(); broken != nil {
				t.Errorf("broken: %q", broken)
			}
		}
	}
}
