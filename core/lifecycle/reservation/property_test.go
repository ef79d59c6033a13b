package reservation_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/reservation"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
)

// told is what the pods were told of their places: the node, "" for one that isn't
// registered.
type told map[types.UID]string

func (w told) Reserve(_ *lifecycle.Turn, uid types.UID, node string) { w[uid] = node }
func (w told) Release(_ *lifecycle.Turn, uid types.UID)              { delete(w, uid) }
func (w told) HandOver(t *lifecycle.Turn, from, to types.UID, node string) {
	w.Release(t, from)
	w.Reserve(t, to, node)
}

// model keeps the places as a list that is searched, in the order of the orders.
type model struct {
	places []modelPlace
	spare  map[string]int
	asks   map[types.UID]time.Time
	limits map[types.UID]time.Time // of pods that have a place
}

// has reports whether a pod has a place.
func (m *model) has(uid types.UID) bool {
	return slices.ContainsFunc(m.places, func(p modelPlace) bool { return slices.Contains(p.pods, uid) })
}

// expire has the pods ask no more whose time is over.
func (m *model) expire(now time.Time) {
	maps.DeleteFunc(m.asks, func(_ types.UID, until time.Time) bool { return !now.Before(until) })
	for _, uid := range slices.Sorted(maps.Keys(m.limits)) {
		if until := m.limits[uid]; !now.Before(until) {
			delete(m.limits, uid)
			m.leave(uid)
		}
	}
}

type modelPlace struct {
	group, node string
	pods        []types.UID
}

// leave takes a pod out of its place, or has it ask for none any more. An ordered node without any pod is spare.
func (m *model) leave(uid types.UID) {
	delete(m.asks, uid)
	for i := range m.places {
		p := &m.places[i]
		had := len(p.pods)
		p.pods = slices.DeleteFunc(slices.Clone(p.pods), func(x types.UID) bool { return x == uid })
		if len(p.pods) == 0 && had > 0 && p.node == "" {
			m.spare[p.group]++
		}
	}
	m.places = slices.DeleteFunc(m.places, func(p modelPlace) bool { return len(p.pods) == 0 })
}

// cut leaves the n oldest of a group's places that are on no node, and as many spare nodes
// as come beside them, if there may be total of both.
func (m *model) cut(group string, n, total int) {
	kept := 0
	m.places = slices.DeleteFunc(m.places, func(p modelPlace) bool {
		if p.group != group || p.node != "" {
			return false
		}
		kept++
		return kept > n
	})
	m.spare[group] = max(min(m.spare[group], total-min(kept, n)), 0)
}

func (m *model) unregistered(group string) (n int) {
	for _, p := range m.places {
		if p.group == group && p.node == "" {
			n++
		}
	}
	return n
}

// history is a machine and its model with the same random history.
type history struct {
	*rapid.T
	bench   *lifecycletest.Bench
	machine *reservation.Machine
	told    told
	model   model
	nodes   int
}

var groups = []string{"g", "h"}

func (h *history) pod() types.UID { return types.UID(fmt.Sprint("p", testkit.Uniform(h.T, 6, "pod"))) }

// something happens to both.
func (h *history) something() {
	group := rapid.SampledFrom(groups).Draw(h.T, "group")
	switch testkit.Uniform(h.T, 12, "what") {
	case 0:
		var bins [][]types.UID
		used := map[types.UID]bool{}
		for range 1 + testkit.Uniform(h.T, 3, "nodes") {
			var bin []types.UID
			for range 1 + testkit.Uniform(h.T, 2, "pods") {
				if uid := h.pod(); !used[uid] {
					used[uid] = true
					bin = append(bin, uid)
				}
			}
			if bin != nil {
				bins = append(bins, bin)
			}
		}
		h.machine.NodesOrdered(h.bench.Turn, group, bins, 0)
		for _, bin := range bins {
			for _, uid := range bin {
				h.model.leave(uid)
			}
			h.model.places = append(h.model.places, modelPlace{group: group, pods: bin})
		}
	case 1:
		n := 1 + testkit.Uniform(h.T, 3, "refused")
		h.machine.OrderRefused(h.bench.Turn, group, n)
		h.model.cut(group, max(h.model.unregistered(group)-n, 0), 1<<30)
	case 2:
		h.nodes++
		name := fmt.Sprint("n", h.nodes)
		h.machine.NodeSet(h.bench.Turn, h.bench.State.Schema.ParseNode(testkit.Node(name).Obj(), group))
		i := slices.IndexFunc(h.model.places, func(p modelPlace) bool { return p.group == group && p.node == "" })
		if i >= 0 {
			h.model.places[i].node = name
		} else {
			h.model.spare[group] = max(h.model.spare[group]-1, 0)
		}
	case 3:
		name := fmt.Sprint("n", 1+testkit.Uniform(h.T, h.nodes+1, "node"))
		h.machine.NodeGone(h.bench.Turn, name)
		h.model.places = slices.DeleteFunc(h.model.places, func(p modelPlace) bool { return p.node == name })
	case 4:
		uid := h.pod()
		h.machine.ReleasePod(h.bench.Turn, uid)
		h.model.leave(uid)
	case 5:
		uid, name := h.pod(), fmt.Sprint("n", 1+testkit.Uniform(h.T, h.nodes+1, "node"))
		h.machine.ReleasePodElsewhere(h.bench.Turn, uid, name)
		if !slices.ContainsFunc(h.model.places, func(p modelPlace) bool { return p.node == name && slices.Contains(p.pods, uid) }) {
			h.model.leave(uid)
		}
	case 6:
		h.join(group)
	case 10: // its place is another's
		from, to := h.pod(), h.pod()
		h.machine.HandOver(h.bench.Turn, from, to)
		at := func(uid types.UID) int {
			return slices.IndexFunc(h.model.places, func(p modelPlace) bool { return slices.Contains(p.pods, uid) })
		}
		if i := at(from); i >= 0 && at(to) < 0 {
			delete(h.model.asks, to)
			pods := slices.Clone(h.model.places[i].pods)
			pods[slices.Index(pods, from)] = to
			h.model.places[i].pods = pods
		}
	case 7: // asks, unless it has a place
		if uid := h.pod(); !h.model.has(uid) {
			until := h.bench.Turn.Now.Add(time.Duration(testkit.Uniform(h.T, 5, "seconds")) * time.Second)
			h.machine.Ask(h.bench.Turn, uid, until)
			h.model.asks[uid] = until
		}
	case 11: // waits for a limited time, if it has a place
		uid, until := h.pod(), h.bench.Turn.Now.Add(time.Duration(testkit.Uniform(h.T, 5, "seconds"))*time.Second)
		h.machine.Limit(uid, until)
		if h.model.has(uid) {
			h.model.limits[uid] = until
		}
	case 8: // time passes
		h.bench.Turn.Now = h.bench.Turn.Now.Add(2 * time.Second)
		h.machine.Advance(h.bench.Turn)
		h.model.expire(h.bench.Turn.Now)
	case 9:
		h.releaseLost(map[string]int{"g": testkit.Uniform(h.T, 4, "coming of g"), "h": testkit.Uniform(h.T, 4, "coming of h")}, testkit.Uniform(h.T, h.nodes+1, "gone"))
	}
}

// join has pods have room on a coming node: one that is registered or not, with a place or
// without.
func (h *history) join(group string) {
	j := &autoscaler.Join{Group: group}
	at := -1
	if len(h.model.places) > 0 && rapid.Bool().Draw(h.T, "with others") {
		at = testkit.Uniform(h.T, len(h.model.places), "place")
		p := h.model.places[at]
		j.Group, j.Node, j.With = p.group, p.node, p.pods[0]
	} else if rapid.Bool().Draw(h.T, "registered") {
		h.nodes++
		j.Node = fmt.Sprint("n", h.nodes)
	}
	var place modelPlace
	if at >= 0 {
		place = h.model.places[at]
	} else {
		place = modelPlace{group: j.Group, node: j.Node}
	}
	for range 1 + testkit.Uniform(h.T, 2, "pods") {
		if uid := h.pod(); !slices.Contains(j.Pods, uid) && !slices.Contains(place.pods, uid) {
			j.Pods = append(j.Pods, uid)
		}
	}
	h.machine.Join(h.bench.Turn, j, j.Pods)
	for _, uid := range j.Pods {
		delete(h.model.asks, uid)
		h.model.leave(uid)
	}
	if len(j.Pods) == 0 {
		return
	}
	if at < 0 {
		h.model.places = append(h.model.places, modelPlace{group: j.Group, node: j.Node, pods: j.Pods})
		return
	}
	i := slices.IndexFunc(h.model.places, func(p modelPlace) bool { return slices.Contains(p.pods, j.With) })
	h.model.places[i].pods = append(slices.Clone(h.model.places[i].pods), j.Pods...)
}

// releaseLost says how many nodes are coming, and that one node can't become usable.
func (h *history) releaseLost(coming map[string]int, lost int) {
	name := fmt.Sprint("n", lost)
	h.machine.ReleaseLost(h.bench.Turn, func(group string) int { return coming[group] }, func(node string) bool { return node != name })
	h.model.places = slices.DeleteFunc(h.model.places, func(p modelPlace) bool { return p.node == name })
	for _, g := range groups {
		h.model.cut(g, coming[g], coming[g])
	}
}

func (h *history) compare() {
	for _, broken := range h.machine.Invariants() {
		h.Fatalf("broken: %s", broken)
	}
	maps.DeleteFunc(h.model.limits, func(uid types.UID, _ time.Time) bool { return !h.model.has(uid) })
	want := told{}
	var places []string
	for _, p := range h.model.places {
		places = append(places, fmt.Sprint(p.group, p.node, p.pods))
		for _, uid := range p.pods {
			want[uid] = p.node
		}
	}
	for uid := range h.model.asks {
		want[uid] = ""
	}
	if got := h.machine.Asking(); !slices.Equal(got, slices.Sorted(maps.Keys(h.model.asks))) {
		h.Fatalf("%v ask for a place, of the model %v", got, h.model.asks)
	}
	var got []string
	for _, p := range h.machine.Places() {
		got = append(got, fmt.Sprint(p.Group, p.Node, p.Pods))
	}
	if !slices.Equal(got, places) {
		h.Fatalf("the places are %v, of the model %v", got, places)
	}
	if !maps.Equal(h.told, want) {
		h.Fatalf("pods were told %v, want %v", h.told, want)
	}
	for _, g := range groups {
		if got, want := h.machine.Spare(g), h.model.spare[g]; got != want {
			h.Fatalf("%d nodes of %s are spare, of the model %d", got, g, want)
		}
	}
}

// TestPropertyPlacesAreAsInASearchedList compares the machine with a list after every step
// of random histories; and once nothing comes any more, nothing is left over.
func TestPropertyPlacesAreAsInASearchedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{T: t, bench: lifecycletest.NewBench(), told: told{}, model: model{spare: map[string]int{}, asks: map[types.UID]time.Time{}, limits: map[types.UID]time.Time{}}}
		h.machine = reservation.New(h.told)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.something()
			h.compare()
		}
		for i := range h.nodes {
			h.releaseLost(map[string]int{}, i+1)
		}
		h.releaseLost(map[string]int{}, 0)
		h.bench.Turn.Now = h.bench.Turn.Now.Add(time.Minute)
		h.machine.Advance(h.bench.Turn)
		h.model.expire(h.bench.Turn.Now)
		h.compare()
		if left := h.machine.Unsettled(); left != nil || len(h.told) > 0 {
			t.Fatalf("left over are %v; pods were told %v", left, h.told)
		}
	})
}
