// Package scaleup finds how many nodes of which group pending pods need, by
// placing them on virtual nodes with the rules and the engine that place them
// for real.
package scaleup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// Packer packs pods on a state of its own, usually a follower. It leaves the
// state as it found it.
type Packer struct {
	State    *cluster.State
	Engine   func(*cluster.Pod) *engine.Engine // of the pod's profile
	Strategy expander.Strategy

	// for one Plan:
	daemons   []*cluster.Workload // the DaemonSets of known profiles
	launching int                 // nodes asked for that aren't ready
}

// pending are some pods of one class, still without a node.
type pending struct {
	class *engine.Class
	pods  []*cluster.Pod
}

// Plan fills in a plan's scale-ups.
func (p *Packer) Plan(req autoscaler.Request, plan *autoscaler.Plan) {
	s := p.State
	mark := s.Mark()
	defer s.Rollback(mark)
	p.daemons = nil
	p.launching = Launching(s, req.Conditions, req.Now, req.Limits.StartupTime)
	for _, w := range s.Workloads() {
		// Of another scheduler's pods nothing is known about where they go.
		if w.Kind == cluster.DaemonSet && p.Engine(w.Template) != nil {
			p.daemons = append(p.daemons, w)
		}
	}
	left := p.cover(req)
	for _, c := range left {
		plan.Covered -= len(c.pods)
	}
	plan.Covered += len(req.Pending)
	bought := map[string]int{}
	for {
		options, packs := p.options(left, bought, &req)
		best := expander.Choose(options, p.Strategy)
		if best < 0 {
			break
		}
		g := s.Group(options[best].Group)
		pods := p.apply(packs[best])
		bought[g.ID] += options[best].Nodes
		record(plan, g.ID, options[best], pods)
		left = without(left, pods)
	}
	at := map[*engine.Class]int{}
	for _, c := range left {
		i, ok := at[c.class]
		if !ok {
			i = len(plan.NoHelp)
			at[c.class] = i
			plan.NoHelp = append(plan.NoHelp, autoscaler.NoHelp{Reasons: p.reasons(c, bought, &req)})
		}
		plan.NoHelp[i].Pods = append(plan.NoHelp[i].Pods, uids(c.pods)...)
	}
}

func record(plan *autoscaler.Plan, group string, o expander.Option, pods []*cluster.Pod) {
	plan.ScaleUps = append(plan.ScaleUps, autoscaler.ScaleUp{Group: group, Nodes: o.Nodes, Wasted: o.Wasted, Pods: uids(pods)})
}

func uids(pods []*cluster.Pod) []types.UID {
	out := make([]types.UID, len(pods))
	for i, p := range pods {
		out[i] = p.UID
	}
	return out
}

// Upcoming counts, by group, the nodes that were asked for and aren't ready.
// A node that is not ready startup after its creation no longer counts; zero
// means that there is no such limit.
func Upcoming(s *cluster.State, conditions map[string]autoscaler.GroupCondition, now time.Time, startup time.Duration) map[string]int {
	out := map[string]int{}
	for _, g := range s.Groups() {
		out[g.ID] = g.Target - conditions[g.ID].LongUnregistered
	}
	s.Nodes(func(n *cluster.Node) {
		if n.Group == "" {
			return
		}
		late := startup > 0 && now.Sub(n.Object.CreationTimestamp.Time) > startup
		if n.Ready() && !starting(n.NodeInfo) || late || n.HasTaint(autoscaler.ToBeDeletedTaint) {
			out[n.Group]--
		}
	})
	for id := range out {
		out[id] = max(out[id], 0)
	}
	return out
}

// Launching counts the nodes of all groups that were asked for and aren't
// ready.
func Launching(s *cluster.State, conditions map[string]autoscaler.GroupCondition, now time.Time, startup time.Duration) (n int) {
	for _, k := range Upcoming(s, conditions, now, startup) {
		n += k
	}
	return n
}

// starting tells whether taints say that the node doesn't take pods yet.
func starting(i *cluster.NodeInfo) bool {
	return i.HasTaint(v1.TaintNodeNotReady) || i.HasTaint(v1.TaintNodeUnreachable)
}

// virtual returns a node as the group would make it.
func virtual(g *cluster.NodeGroup, suffix string) *cluster.NodeInfo {
	return g.Template.Renamed(virtualName(g, suffix))
}

func virtualName(g *cluster.NodeGroup, suffix string) string { return g.ID + "/" + suffix }

// addNode adds a virtual node with the daemon pods that it would get.
func (p *Packer) addNode(g *cluster.NodeGroup, suffix string) cluster.NodeIndex {
	i := p.State.SetNode(virtual(g, suffix))
	for _, w := range p.daemons {
		e := p.Engine(w.Template)
		if e.Explain(e.Class(w.Template), i) == nil {
			p.State.PlaceAt(w.Template.Instance(fmt.Sprintf("%s/%s on %s", w.Namespace, w.Name, p.State.Node(i).Name)), i)
		}
	}
	return i
}

// runs divides pods into runs of one class, in their order: pods are packed in
// the order in which they will be scheduled, however they are classed.
func (p *Packer) runs(pods []*cluster.Pod) []*pending {
	var out []*pending
	for _, pod := range pods {
		c := p.Engine(pod).Class(pod)
		if n := len(out); n > 0 && out[n-1].class == c {
			out[n-1].pods = append(out[n-1].pods, pod)
		} else {
			out = append(out, &pending{c, []*cluster.Pod{pod}})
		}
	}
	return out
}

// cover places pods on nodes that exist or are coming and returns those left
// over, so that nothing is bought twice. Nodes on their way are first packed
// with the pods they were ordered for, as they were when they were ordered;
// what room is left on them is anybody's.
func (p *Packer) cover(req autoscaler.Request) []*pending {
	left := p.place(p.runs(req.Pending))
	coming := Upcoming(p.State, req.Conditions, req.Now, req.Limits.StartupTime)
	added := map[string]int{}
	for _, promise := range req.Orders {
		g := p.State.Group(promise.Group)
		if g == nil {
			continue
		}
		room := min(promise.Nodes, coming[g.ID]-added[g.ID])
		k := p.pack(g, upcomingNode, added[g.ID], room, only(left, promise.Pods))
		added[g.ID] += k.nodes
		left = without(left, k.pods)
	}
	for _, g := range p.State.Groups() {
		for ; added[g.ID] < coming[g.ID]; added[g.ID]++ {
			p.addNode(g, upcomingNode(added[g.ID]))
		}
	}
	return p.place(left)
}

// place places pods on the nodes there are, in order, and returns those left.
func (p *Packer) place(list []*pending) []*pending {
	var out []*pending
	for _, c := range list {
		n := p.Engine(c.pods[0]).PlaceMany(c.class, c.pods, ignore)
		if n < len(c.pods) {
			out = append(out, &pending{c.class, c.pods[n:]})
		}
	}
	return out
}

func ignore(*cluster.Pod, engine.Choice) {}

// pack is what a group could take.
type pack struct {
	group *cluster.NodeGroup
	from  int // number of its first virtual node
	nodes int
	pods  []*cluster.Pod
	where []string
}

func (p *Packer) options(left []*pending, bought map[string]int, req *autoscaler.Request) ([]expander.Option, []pack) {
	var options []expander.Option
	var packs []pack
	for _, g := range p.State.Groups() {
		room, _ := p.headroom(g, bought, req)
		if room <= 0 {
			continue
		}
		mark := p.State.Mark()
		k := p.pack(g, newNode, bought[g.ID], room, left)
		wasted := p.wasted(g, k)
		p.State.Rollback(mark)
		if k.nodes == 0 {
			continue
		}
		options = append(options, expander.Option{Group: g.ID, Nodes: k.nodes, Pods: len(k.pods), Wasted: wasted})
		packs = append(packs, k)
	}
	return options, packs
}

// headroom returns how many more nodes the group may get, and when that is
// none, why.
func (p *Packer) headroom(g *cluster.NodeGroup, bought map[string]int, req *autoscaler.Request) (int, string) {
	if req.Conditions[g.ID].BackingOff {
		return 0, "in backoff after failed scale-up"
	}
	limits := &req.Limits
	room := g.Max - g.Target - bought[g.ID]
	if room <= 0 {
		return 0, "max node group size reached"
	}
	if limits.MaxNodesPerScaleUp > 0 {
		if room = min(room, limits.MaxNodesPerScaleUp-bought[g.ID]); room <= 0 {
			return 0, "max number of nodes per scale-up reached"
		}
	}
	if limits.MaxNodesTotal > 0 {
		if room = min(room, limits.MaxNodesTotal-p.State.Live()); room <= 0 { // real, upcoming and bought ones
			return 0, "max cluster size reached"
		}
	}
	if limits.MaxNodesLaunching > 0 {
		room = min(room, limits.MaxNodesLaunching-p.launching)
		for _, n := range bought {
			room -= n
		}
	}
	return room, "max number of nodes launching reached"
}

// pack places what it can on existing and new nodes of a group, the largest
// first (first fit decreasing), adding a node when a pod has no place. A class
// that an empty node didn't take isn't tried on another.
func (p *Packer) pack(g *cluster.NodeGroup, name func(int) string, from, room int, left []*pending) pack {
	k := pack{group: g, from: from}
	hopeless := map[*engine.Class]bool{}
	for _, c := range largestFirst(g, left) {
		e := p.Engine(c.pods[0])
		placed := func(pod *cluster.Pod, choice engine.Choice) {
			k.pods = append(k.pods, pod)
			k.where = append(k.where, p.State.Node(choice.Node).Name)
		}
		for rest := c.pods; len(rest) > 0; {
			n := e.PlaceMany(c.class, rest, placed)
			rest = rest[n:]
			if len(rest) == 0 || k.nodes >= room {
				break
			}
			class := e.Current(c.class, rest[0])
			if hopeless[class] {
				break
			}
			mark := p.State.Mark()
			p.addNode(g, name(from+k.nodes))
			if _, ok := e.Best(class); !ok {
				p.State.Rollback(mark)
				hopeless[class] = true
				break
			}
			p.State.Release(mark)
			k.nodes++
		}
	}
	return k
}

// apply does again what pack did, for good.
func (p *Packer) apply(k pack) []*cluster.Pod {
	for i := range k.nodes {
		p.addNode(k.group, newNode(k.from+i))
	}
	for i, pod := range k.pods {
		p.Engine(pod).PlaceOn(pod, p.State.NodeByName(k.where[i]).Index)
	}
	return k.pods
}

// largestFirst orders runs by the share of a template node that a pod takes.
func largestFirst(g *cluster.NodeGroup, left []*pending) []*pending {
	out := slices.Clone(left)
	slices.SortStableFunc(out, func(a, b *pending) int {
		return cmp.Compare(share(g, b.class.Pod()), share(g, a.class.Pod()))
	})
	return out
}

func share(g *cluster.NodeGroup, pod *cluster.Pod) float64 {
	var sum float64
	for _, id := range []cluster.ResourceID{cluster.CPU, cluster.Memory} {
		if a := g.Template.Allocatable.At(id); a > 0 {
			sum += float64(pod.Request.At(id)) / float64(a)
		}
	}
	return sum
}

// wasted is the unused share of CPU plus that of memory on the new nodes.
func (p *Packer) wasted(g *cluster.NodeGroup, k pack) float64 {
	var used [2]int64
	for i := range k.nodes {
		n := p.State.NodeByName(virtualName(g, newNode(k.from+i)))
		for _, pod := range n.Pods {
			if pod.Daemon() {
				continue // overhead, not use
			}
			for id := range used {
				used[id] += pod.Request.At(cluster.ResourceID(id))
			}
		}
	}
	var sum float64
	for id := range used {
		if all := g.Template.Allocatable.At(cluster.ResourceID(id)) * int64(k.nodes); all > 0 {
			sum += 1 - float64(used[id])/float64(all)
		}
	}
	return sum
}

// Names of virtual nodes: to be bought, and bought already.
func newNode(i int) string      { return fmt.Sprintf("new-%d", i) }
func upcomingNode(i int) string { return fmt.Sprintf("upcoming-%d", i) }

// without takes placed pods out of the pending ones.
func without(left []*pending, placed []*cluster.Pod) []*pending {
	gone := map[types.UID]bool{}
	for _, p := range placed {
		gone[p.UID] = true
	}
	return filtered(left, func(p *cluster.Pod) bool { return !gone[p.UID] })
}

// only keeps the pods with these UIDs.
func only(left []*pending, keep []types.UID) []*pending {
	kept := map[types.UID]bool{}
	for _, uid := range keep {
		kept[uid] = true
	}
	return filtered(left, func(p *cluster.Pod) bool { return kept[p.UID] })
}

func filtered(left []*pending, keep func(*cluster.Pod) bool) []*pending {
	var out []*pending
	for _, c := range left {
		rest := slices.DeleteFunc(slices.Clone(c.pods), func(p *cluster.Pod) bool { return !keep(p) })
		if len(rest) > 0 {
			out = append(out, &pending{c.class, rest})
		}
	}
	return out
}

// reasons says per group why it can't help the class, counted and sorted.
func (p *Packer) reasons(c *pending, bought map[string]int, req *autoscaler.Request) []string {
	counts := map[string]int{}
	for _, g := range p.State.Groups() {
		if room, why := p.headroom(g, bought, req); room <= 0 {
			counts[why]++
			continue
		}
		mark := p.State.Mark()
		i := p.addNode(g, "probe")
		e := p.Engine(c.pods[0])
		if reason := e.Explain(e.Current(c.class, c.pods[0]), i); reason != nil {
			for _, m := range reason.Messages {
				counts[m]++
			}
		}
		p.State.Rollback(mark)
	}
	var out []string
	for m, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, m))
	}
	slices.Sort(out)
	return out
}
