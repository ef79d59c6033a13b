package headroom

import (
	"fmt"
	"iter"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/internal/test/testkit"
)

// records are those of the machine's stand-ins alone.
type records map[types.UID]*Pod

func (r records) Get(uid types.UID) *Pod                  { return r[uid] }
func (r records) All() iter.Seq2[types.UID, *Pod]         { return nil }
func (r records) Queue(_ *lifecycle.Turn, p *cluster.Pod) { r[p.UID] = &Pod{} }
func (r records) Drop(uid types.UID)                      { delete(r, uid) }

// booking is a request with sets of stand-ins, on a few nodes.
type booking struct {
	m     *Machine
	a     *ask
	state *cluster.State
	turn  *lifecycle.Turn
	pods  int // that have come
}

func newBooking(nodes int) *booking {
	b := &booking{m: New(nil, records{}), a: &ask{key: key{cluster.ProvisioningRequestKind, "default", "r"}, uid: "r"}, state: cluster.New(cluster.NewSchema())}
	b.turn = &lifecycle.Turn{State: b.state}
	for i := range nodes {
		b.state.SetNode(b.state.Schema.ParseNode(testkit.Node(fmt.Sprint("n", i)).Obj(), ""))
	}
	return b
}

// book adds a set of stand-ins with a request.
func (b *booking) book(count int, cpu string) {
	s := &set{shape: testkit.Pod("").Req("cpu", cpu).Obj(), number: len(b.a.sets)}
	b.a.sets = append(b.a.sets, s)
	for range count {
		b.m.queue(b.turn, b.a.grow(b.state.Schema, s))
	}
}

// keep has room kept for a stand-in on a node.
func (b *booking) keep(x *standIn, node string) {
	b.state.Nominate(x.pod, node)
	x.move(node)
}

// comes returns a pod that has come to a node, or, for "", that waits.
func (b *booking) comes(cpu, node string) *cluster.Pod {
	b.pods++
	p := b.state.Schema.ParsePod(testkit.Pod(fmt.Sprint("p", b.pods)).Req("cpu", cpu).Obj())
	if node != "" {
		b.state.Place(p, node)
	}
	return p
}

// closestByWalk returns the first stand-in of the highest rank, by a walk over all, with 2 more
// when it requests what the pod does; nil when none has a rank of 0 or more.
func closestByWalk(a *ask, pod *cluster.Pod, rank func(*standIn) int) (out *standIn) {
	best := -1
	for _, s := range a.sets {
		for x := s.oldest; x != nil; x = x.newer {
			r := rank(x)
			if r >= 0 && x.pod.NonZero == pod.NonZero {
				r += 2
			}
			if r > best {
				out, best = x, r
			}
		}
	}
	return out
}

// TestPropertyClosestIsThatOfAWalk: whatever stand-ins there are and wherever they have room or are
// nominated, a pod takes the one that a walk over all of them would find.
func TestPropertyClosestIsThatOfAWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBooking(3)
		cpus, nodes := rapid.SampledFrom([]string{"1", "2", "3"}), rapid.SampledFrom([]string{"", "n0", "n1", "n2"})
		for range rapid.IntRange(1, 4).Draw(t, "sets") {
			b.book(rapid.IntRange(0, 6).Draw(t, "count"), cpus.Draw(t, "cpu"))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			var all []*standIn
			for _, s := range b.a.sets {
				for x := s.oldest; x != nil; x = x.newer {
					all = append(all, x)
				}
			}
			node := nodes.Draw(t, "node")
			switch do := rapid.SampledFrom([]string{"keep", "nominate", "place", "wait", "grow"}).Draw(t, "do"); {
			case do == "grow":
				b.m.queue(b.turn, b.a.grow(b.state.Schema, rapid.SampledFrom(b.a.sets).Draw(t, "set")))
			case do == "place":
				pod := b.comes(cpus.Draw(t, "cpu"), node)
				got := b.m.closest(b.state, b.a, pod)
				if want := closestByWalk(b.a, pod, func(x *standIn) int {
					switch {
					case node != "" && (x.node == node || b.state.NominatedTo(x.pod.UID) == node):
						return 4
					case x.waits():
						return 1
					}
					return 0
				}); got != want {
					t.Fatalf("%s on %q takes %s, want %s", pod.Name(), node, named(got), named(want))
				}
				b.m.giveRoom(b.a, pod.UID, got)
			case do == "wait":
				pod := b.comes(cpus.Draw(t, "cpu"), "")
				got := b.m.closestWaiting(b.a, pod)
				if want := closestByWalk(b.a, pod, func(x *standIn) int {
					if x.waits() {
						return 0
					}
					return -1
				}); got != want {
					t.Fatalf("%s waits for %s, want %s", pod.Name(), named(got), named(want))
				}
			case len(all) == 0:
			case do == "keep":
				b.keep(rapid.SampledFrom(all).Draw(t, "stand-in"), node)
			default: // it waits, with a place
				x := rapid.SampledFrom(all).Draw(t, "stand-in")
				x.move("")
				b.state.Nominate(x.pod, node)
			}
			b.check(t)
		}
	})
}

func named(x *standIn) string {
	if x == nil {
		return "none"
	}
	return string(x.pod.UID)
}

// check asserts that each stand-in is in the line that it belongs to.
func (b *booking) check(t *rapid.T) {
	for _, s := range b.a.sets {
		count, before := 0, 0
		for x := s.oldest; x != nil; x = x.newer {
			l := &s.waiting
			if !x.waits() {
				l = s.held[x.node]
			}
			if (*l)[x.at] != x || x.number <= before || b.m.records.Get(x.pod.UID).self != x {
				t.Fatalf("%s isn't where it belongs", named(x))
			}
			count, before = count+1, x.number
		}
		in := s.waiting.Len()
		for _, l := range s.held {
			in += l.Len()
		}
		if count != s.count || in != count {
			t.Fatalf("of %d stand-ins %d are listed, and %d are in a line", s.count, count, in)
		}
	}
}

// TestConsumingABookingIsBounded asserts how much is looked at when all of a request's pods come,
// to nodes with room for it, to others, or to none: for each pod no more than the sets, twice, and
// what is to be placed on its node.
func TestConsumingABookingIsBounded(t *testing.T) {
	const nodes, sets = 200, 4
	for _, all := range []int{400, 4000, 10_000} {
		for name, x := range map[string]struct{ kept, comes func(i int) string }{
			"on their nodes": {kept: func(i int) string { return fmt.Sprint("n", i%nodes) }, comes: func(i int) string { return fmt.Sprint("n", (all-i)%nodes) }},
			"on one node":    {kept: func(int) string { return "n0" }, comes: func(int) string { return "n0" }},
			"elsewhere":      {kept: func(int) string { return "n0" }, comes: func(int) string { return "n1" }},
			"not placed yet": {kept: func(int) string { return "" }, comes: func(i int) string { return fmt.Sprint("n", i%nodes) }},
		} {
			t.Run(fmt.Sprintf("%d pods %s", all, name), func(t *testing.T) {
				b := newBooking(nodes)
				for i := range sets {
					b.book(all/sets, fmt.Sprintf("%dm", 10+i))
				}
				i := 0
				for _, s := range b.a.sets {
					for y := s.oldest; y != nil; y = y.newer {
						if node := x.kept(i); node != "" {
							b.keep(y, node)
						}
						i++
					}
				}
				for i := range all {
					b.m.consume(b.turn, b.a, b.comes("12m", x.comes(i)))
				}
				if left := len(podsOf(b.a.sets)); left != 0 {
					t.Errorf("%d stand-ins are left", left)
				}
				if most := 2 * sets * all; b.m.looked > most {
					t.Errorf("%d sets and stand-ins were looked at, want no more than %d", b.m.looked, most)
				}
			})
		}
	}
}

// TestABookingParsesEachShapeOnce: stand-ins of a set are instances of what was parsed first.
func TestABookingParsesEachShapeOnce(t *testing.T) {
	b := newBooking(0)
	s := &set{shape: testkit.Pod("").HostPort(80).Obj()}
	b.a.sets = append(b.a.sets, s)
	first := b.a.grow(b.state.Schema, s)
	for i := 2; i <= 100; i++ {
		x := b.a.grow(b.state.Schema, s)
		if &x.pod.Ports[0] != &first.pod.Ports[0] {
			t.Fatalf("%s was parsed by itself", named(x))
		}
		if name, uid := fmt.Sprint("default/provisioning-request-r-0-", i), types.UID(fmt.Sprint("headroom/r/0/", i)); x.pod.Name() != name || x.pod.UID != uid || x.pod.StandIn != "r" || x.pod.Object.OwnerReferences[0].UID != "r" {
			t.Errorf("stand-in %d is %s, %s of %s, want %s, %s", i, x.pod.Name(), x.pod.UID, x.pod.StandIn, name, uid)
		}
	}
}
