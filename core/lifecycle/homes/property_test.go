package homes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
)

const homeTime = 20 * time.Second

// model keeps the homes as entries of what has happened, and works out anew each time which
// of them have ended.
type model struct {
	homes map[string]*modelHome // by the pod's name
	said  map[string][]int      // by owner, how many pods it has said that it lacks, one after the other
	gone  map[string]bool       // owners
	kept  int                   // homes so far
}

type modelHome struct {
	owner, from string
	known       bool // the owner was there when the room was kept
	surging     bool // its Deployment is asked for a successor
	evicted     bool
	leaving     bool // terminating, as the API shows it
	left        time.Time
	said        int // how often the owner had spoken when the pod left, or was evicted after all
	number      int // in the order of keeping
	spareSince  time.Time
}

// over reports whether a home has ended by itself.
func (m *model) over(h *modelHome, now time.Time) bool {
	switch {
	case h.left.IsZero():
		return false
	case m.gone[h.owner] && h.known || !now.Before(h.left.Add(homeTime)):
		return true
	}
	return !h.spareSince.IsZero() && !now.Before(h.spareSince.Add(5*time.Second))
}

// findSpare works out which homes nobody comes for: of each owner, of those about which it has
// spoken since the pod left, the ones beyond the number of pods that it lacks.
func (m *model) findSpare(now time.Time) {
	lacks := map[string]int{}
	for _, h := range slices.SortedFunc(maps.Values(m.homes), func(a, b *modelHome) int { return a.number - b.number }) {
		said := m.said[h.owner]
		spare := false
		if !h.left.IsZero() && !m.gone[h.owner] && (!h.surging || h.evicted) && len(said) > h.said {
			lacks[h.owner]++
			spare = lacks[h.owner] > said[len(said)-1]
		}
		switch {
		case !spare:
			h.spareSince = time.Time{}
		case h.spareSince.IsZero():
			h.spareSince = now
		}
	}
}

func (m *model) names() string { return strings.Join(slices.Sorted(maps.Keys(m.homes)), " ") }

// history is a machine and its model with the same random history.
type history struct {
	*rapid.T
	*lifecycletest.Bench
	machine *homes.Machine
	model   model
	pods    int
}

var (
	nodeNames = []string{"n0", "n1", "n2", "n3"}
	owners    = []string{"web-1", "db-1"} // ReplicaSets of Deployments
)

func (h *history) pod(name, owner, node string) *cluster.Pod {
	_, hash, _ := strings.Cut(owner, "-")
	return h.State.Schema.ParsePod(testkit.Pod(name).Req("cpu", "1").Owner("apps/v1", "ReplicaSet", owner).Label("pod-template-hash", hash).On(node).Obj())
}

func (h *history) newPod(owner, node string) *cluster.Pod {
	h.pods++
	return h.pod(fmt.Sprint("p", h.pods), owner, node)
}

// placed draws a pod that is on a node, nil when there is none.
func (h *history) placed() (out *cluster.Pod) {
	var all []*cluster.Pod
	h.State.Pods(func(p *cluster.Pod) { all = append(all, p) })
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *cluster.Pod) int { return strings.Compare(a.Name(), b.Name()) })
	return rapid.SampledFrom(all).Draw(h.T, "pod")
}

// leaves has the model take that a pod leaves.
func (h *history) leaves(name string) {
	if x := h.model.homes[name]; x != nil && x.left.IsZero() {
		x.left, x.said = h.Now, len(h.model.said[x.owner])
	}
}

// something happens to both.
func (h *history) something() {
	node, owner := rapid.SampledFrom(nodeNames).Draw(h.T, "node"), rapid.SampledFrom(owners).Draw(h.T, "owner")
	switch testkit.Uniform(h.T, 11, "what") {
	case 0:
		p := h.newPod(owner, node)
		h.State.Place(p, node)
	case 1:
		h.reserve(node)
	case 2, 3:
		if p := h.placed(); p != nil {
			h.machine.PodEvicted(h.Turn, p)
			h.leaves(p.Object.Name)
			if x := h.model.homes[p.Object.Name]; x != nil {
				if x.surging && !x.evicted {
					x.said = len(h.model.said[x.owner])
				}
				x.evicted = true
			}
		}
	case 4:
		h.goes()
	case 5:
		h.machine.ReleaseUnevicted(h.Turn, node)
		maps.DeleteFunc(h.model.homes, func(_ string, x *modelHome) bool { return x.from == node && !x.evicted && !x.leaving })
	case 6:
		if rapid.Bool().Draw(h.T, "of the next ReplicaSet") {
			owner = strings.Replace(owner, "1", "2", 1)
		}
		h.arrives(h.newPod(owner, ""), rapid.Bool().Draw(h.T, "on a node already"))
	case 7:
		h.ownerSays(owner)
	case 8:
		h.Now = h.Now.Add(time.Duration(testkit.Uniform(h.T, 8, "seconds")) * time.Second)
	case 10:
		if p := h.placed(); p != nil {
			h.machine.SuccessorRequested(h.Turn, p)
			h.leaves(p.Object.Name)
			if x := h.model.homes[p.Object.Name]; x != nil {
				x.surging = true
			}
		}
	case 9: // a node comes, changes, or goes
		if h.State.NodeByName(node) != nil && testkit.Uniform(h.T, 3, "goes") == 0 {
			h.State.RemoveNode(node)
			return
		}
		h.Node(testkit.Node(node).Alloc("cpu", fmt.Sprint(1+testkit.Uniform(h.T, 4, "cpu")), "memory", "64Gi").Obj())
	}
}

func (h *history) reserve(node string) {
	r := &autoscaler.Removal{Node: node}
	var names []string
	if n := h.State.NodeByName(node); n != nil {
		for _, p := range n.Pods {
			r.Homes = append(r.Homes, autoscaler.Home{Pod: p.UID, Node: rapid.SampledFrom(nodeNames).Draw(h.T, "home")})
			names = append(names, p.Object.Name)
		}
	}
	before := h.nominations()
	if why := h.machine.Reserve(h.Turn, r); why != "" {
		if after := h.nominations(); after != before {
			h.Fatalf("nothing is kept (%s), and the nominations are %s, were %s", why, after, before)
		}
		return
	}
	for _, name := range names {
		p := h.State.PodOn(types.UID("pod-" + name))
		if h.model.homes[name] == nil && p.Object.DeletionTimestamp == nil {
			h.model.kept++
			h.model.homes[name] = &modelHome{number: h.model.kept, owner: p.Object.OwnerReferences[0].Name, from: node, known: h.State.OwnerOf(p) != nil}
		}
	}
}

func (h *history) nominations() (out string) {
	for _, n := range h.State.Nominations() {
		out += fmt.Sprintf("%s to %s, ", n.Pod.UID, n.Name)
	}
	return out
}

// goes has a pod terminate, or be gone.
func (h *history) goes() {
	p := h.placed()
	if p == nil {
		return
	}
	x := h.model.homes[p.Object.Name]
	h.leaves(p.Object.Name)
	h.machine.PodTerminating(h.Turn, p.UID)
	gone := rapid.Bool().Draw(h.T, "gone")
	if x != nil {
		x.leaving = !gone
	}
	if gone {
		h.State.Remove(p.UID)
		return
	}
	again := *p.Object
	again.DeletionTimestamp = testkit.Pod("").Terminating().DeletionTimestamp
	h.State.Place(h.State.Schema.ParsePod(&again), p.Object.Spec.NodeName)
}

// ownerSays has an owner say how many pods it has, or be gone.
func (h *history) ownerSays(owner string) {
	if testkit.Uniform(h.T, 6, "is gone") == 0 {
		if h.State.Workload(cluster.ReplicaSet, "default", owner) != nil {
			h.State.RemoveWorkload(cluster.ReplicaSet, "default", owner)
			h.model.gone[owner] = true
		}
		return
	}
	if h.model.gone[owner] {
		return // it doesn't come again
	}
	r := cluster.Replicas{Wanted: 4, Existing: int32(2 + testkit.Uniform(h.T, 4, "existing"))}
	if w := h.State.Workload(cluster.ReplicaSet, "default", owner); w != nil && w.Replicas == r {
		return // nothing new
	}
	h.State.SetWorkload(&cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: owner, Selector: labels.Nothing(), Replicas: r})
	h.model.said[owner] = append(h.model.said[owner], r.Missing())
}

// arrives has a new pod end one home of a pod of its owner that has left, or of its Deployment
// that surges, if there is one.
func (h *history) arrives(p *cluster.Pod, placed bool) {
	if placed {
		h.machine.PodAppearedBound(h.Turn, p)
	} else if room := h.machine.PodAppearedPending(h.Turn, p); room != nil {
		if n := h.State.NodeByName(room.Name); n != nil {
			h.State.Place(p, n.Name)
		}
	}
	var may []string
	for name, x := range h.model.homes {
		rs := p.Object.OwnerReferences[0].Name
		if (x.owner == rs || x.surging && x.owner[:2] == rs[:2]) && !x.left.IsZero() {
			may = append(may, name)
		}
	}
	r := h.Flush()
	if len(may) == 0 != (len(r.Decisions) == 0) {
		h.Fatalf("pod %s arrives, and may end a home of %v; decided: %+v", p.Name(), may, r.Decisions)
	}
	for _, d := range r.Decisions {
		name := strings.TrimPrefix(d.Pod, "default/")
		if d.Kind == step.HomeTaken {
			_, name, _ = strings.Cut(d.Reason, "default/")
		}
		if !slices.Contains(may, name) {
			h.Fatalf("pod %s has ended the home of %s, and may end one of %v", p.Name(), name, may)
		}
		delete(h.model.homes, name)
	}
}

// check compares after an Advance.
func (h *history) check() {
	h.machine.Advance(h.Turn)
	h.model.findSpare(h.Now)
	maps.DeleteFunc(h.model.homes, func(_ string, x *modelHome) bool { return h.model.over(x, h.Now) })
	var got []string
	for _, line := range h.machine.Unsettled() {
		got = append(got, strings.Fields(strings.TrimPrefix(line, "the home of pod default/"))[0])
	}
	slices.Sort(got)
	if got, want := strings.Join(got, " "), h.model.names(); got != want {
		h.Fatalf("at %s the homes are of %q, want %q", h.Now.UTC().Format(time.TimeOnly), got, want)
	}
	for _, broken := range append(h.machine.Invariants(), h.machine.InvariantsIn(h.State)...) {
		h.Fatalf("broken invariant: %s", broken)
	}
	for _, x := range h.model.homes {
		if wake := h.machine.NextWake(); !x.left.IsZero() && (wake.IsZero() || wake.After(x.left.Add(homeTime))) {
			h.Fatalf("a home ends at %s, and the machine wants to be woken at %s", x.left.Add(homeTime), wake)
		}
	}
	h.Flush()
}

// TestPropertyHomesAreThoseOfTheModel plays a random history to the machine and to the model:
// the same pods have homes after each Step, every home ends once, and in the end neither a
// home nor a nomination is left over.
func TestPropertyHomesAreThoseOfTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := lifecycletest.NewBench()
		h := &history{T: t, Bench: b, machine: homes.New(homes.Config{Time: homeTime}, b.Scheduler),
			model: model{homes: map[string]*modelHome{}, said: map[string][]int{}, gone: map[string]bool{}}}
		for _, name := range nodeNames {
			h.Node(testkit.Node(name).Alloc("cpu", "4", "memory", "64Gi").Obj())
		}
		for _, owner := range owners {
			h.ownerSays(owner)
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			h.something()
			h.check()
		}
		for _, name := range nodeNames {
			h.machine.ReleaseUnevicted(h.Turn, name)
			maps.DeleteFunc(h.model.homes, func(_ string, x *modelHome) bool { return x.from == name && !x.evicted && !x.leaving })
		}
		for wake := h.machine.NextWake(); !wake.IsZero(); wake = h.machine.NextWake() {
			h.Now = wake
			h.check()
		}
		if left := h.machine.Unsettled(); left != nil {
			t.Fatalf("left over: %v", left)
		}
		for _, n := range h.State.Nominations() {
			t.Fatalf("%s is nominated to %s still", n.Pod.UID, n.Name)
		}
	})
}
