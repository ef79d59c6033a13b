package scaleup

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
)

// This file plans for pod groups. A gang is one item: enough of its members have places in the plan,
// or none has, and nothing is bought for it. It is packed as pods are, on nodes that are there, that
// are coming and that are bought, under a mark: what the packing has come to is carried out when
// enough members are placed (gang_attempt.go), and otherwise taken back. Where the gang requires a
// topology, it is packed in one domain after the other (gang_domains.go), and the expander chooses
// among those in which it fits.
//
// Members that have places keep them as long as the others fit beside them. Otherwise the whole gang
// is planned anew, as if it had none; when it doesn't fit then either, its places end, and nodes that
// are coming and that nobody needs are given up.
//
// What gangs may cost is bounded by counts: a gang isn't tried after one has failed that looks the same
// to a plan; a gang is tried in no further domain once it has cost maxWorkOfGang; and once maxGangWork is
// reached the rest are left to the next plan.

// gang is a pod group of the request.
type gang struct {
	*autoscaler.Gang
	need    int            // how many of the members must have a place
	inPlace []*cluster.Pod // those that are on the nodes of their places
	left    []*cluster.Pod // the others
	shape   string         // of the members that were tried last
	cut     bool           // some domains weren't looked at
	out     autoscaler.GangPlan
}

// gangs are those of a plan, with what was done for them.
type gangs struct {
	list     []*gang // in the order of scheduling
	byMember map[types.UID]*gang
	// standing is set while a gang is packed: what is proposed stands in the state, and the stopwatch
	// isn't asked.
	standing bool
	only     map[string]bool // the groups of which nodes may be bought for the gang that is packed; nil for all
	work     int             // answers and pods, counted roughly
	most     int             // work at which no more is tried for the gang whose turn it is
	kept     int             // attempts that were carried out
	givingUp int             // coming nodes that were tried to do without
	failed   map[string]*failedGang
	places   map[cluster.NodeIndex]*autoscaler.Place // by the coming node
	bins     map[string]binOf                        // by the new node's name
	moved    map[types.UID]bool                      // members whose places end with the plan
}

// maxGangWork is how much work a plan does for gangs: some tenths of a second. maxWorkOfGang is the most
// that one gang gets of it, so that those after it get some. tryGangWork is the least that an attempt counts,
// however few members it has to place.
const (
	maxGangWork   = 1 << 22
	maxWorkOfGang = maxGangWork / 8
	tryGangWork   = 1 << 8
)

// gangsOver reports whether the gang whose turn it is has cost all that it may.
func (b *builder) gangsOver() bool { return b.gangs.work > b.gangs.most }

// gangsTogether is how many gangs are tried before others have their turn in the next plan.
const gangsTogether = 1024

// newGangs is called before anything is placed.
func (b *builder) newGangs() {
	b.gangs = gangs{byMember: map[types.UID]*gang{}, failed: map[string]*failedGang{}, places: map[cluster.NodeIndex]*autoscaler.Place{},
		bins: map[string]binOf{}, moved: map[types.UID]bool{}}
	for i := range b.req.Gangs {
		g := &gang{Gang: &b.req.Gangs[i]}
		g.need = max(g.MinCount-b.State.PlacedMembers(g.Key), 1)
		g.out = autoscaler.GangPlan{Gang: g.Key.String(), Members: len(g.Members), Need: g.need}
		b.gangs.list = append(b.gangs.list, g)
		for _, pod := range g.Members {
			b.gangs.byMember[pod.UID] = g
			b.State.Nominate(pod, "")
		}
	}
}

// memberRuns divides members into runs. A class of members says in which domain the others are, so it
// is looked up anew each time.
func (b *builder) memberRuns(pods []*cluster.Pod) (out []*run) {
	for _, pod := range pods {
		e := b.Engine(pod)
		class := e.Class(pod)
		if n := len(out); n > 0 && out[n-1].class == class {
			out[n-1].pods = append(out[n-1].pods, pod)
		} else {
			out = append(out, &run{class: class, countable: e.Countable(class), pods: []*cluster.Pod{pod}})
		}
	}
	return out
}

// membersWithPlaces returns the members that places are kept for.
func (b *builder) membersWithPlaces() (out []*run) {
	if len(b.gangs.list) == 0 {
		return nil
	}
	has := map[types.UID]bool{}
	for i := range b.req.Places {
		for _, uid := range b.req.Places[i].Pods {
			has[uid] = true
		}
	}
	for _, g := range b.gangs.list {
		b.memory.learn(b.State, g.Members)
		with := slices.DeleteFunc(slices.Clone(g.Members), func(pod *cluster.Pod) bool { return !has[pod.UID] })
		out = append(out, b.memberRuns(with)...)
	}
	return out
}

// splitMembers divides runs into those of single pods and those of members.
func (b *builder) splitMembers(runs []*run) (single, members []*run) {
	if len(b.gangs.list) == 0 {
		return runs, nil
	}
	for _, r := range runs {
		if b.gangs.byMember[r.pods[0].UID] != nil {
			members = append(members, r)
		} else {
			single = append(single, r)
		}
	}
	return single, members
}

// placeGangs finds places for the gangs, and reports whether nodes are bought for any. Those that
// there was no time for are Unplanned.
func (b *builder) placeGangs() (bought bool) {
	for _, g := range b.gangs.list {
		for _, pod := range g.Members {
			if b.State.PodOn(pod.UID) != nil {
				g.inPlace = append(g.inPlace, pod)
			} else {
				g.left = append(g.left, pod)
			}
		}
	}
	defer func() { b.work.Gangs += b.gangs.work }()
	turn := gangsInTurn(b.gangs.list, b.req.Number)
	b.triedBefore = b.work.Tried
	for i, g := range turn {
		if b.gangs.work > maxGangWork || (b.gangs.kept > 0 || b.inVain()) && b.planOver() {
			for _, g := range turn[i:] {
				b.plan.Unplanned += len(g.left)
			}
			break
		}
		b.placeGang(g)
		if g.out.Placed > 0 {
			g.out.InPlace = uids(expander.Pods{g.inPlace})
		}
		bought = bought || g.out.Nodes > 0
		b.plan.Gangs = append(b.plan.Gangs, g.out)
	}
	return bought
}

// gangsInTurn returns gangs so that each plan begins with others, if they are more than one plan may
// be able to try.
func gangsInTurn(list []*gang, plan uint64) []*gang {
	parts := (len(list) + gangsTogether - 1) / gangsTogether
	if parts < 2 {
		return list
	}
	first := int(plan%uint64(parts)) * gangsTogether
	return slices.Concat(list[first:], list[:first])
}

// placeGang finds places for a gang: beside those that are kept for it, or else for all members anew.
func (b *builder) placeGang(g *gang) {
	b.gangs.most = b.gangs.work + maxWorkOfGang
	inPlace := len(g.inPlace)
	if inPlace > 0 && !b.scattered(g) {
		enough := inPlace >= g.need
		if len(g.left) == 0 && enough {
			if a := b.giveUpComing(g); a != nil {
				b.carryOut(g, a)
				return
			}
			g.out.Placed = inPlace
			return
		}
		if a := b.bestAttempt(g, g.left, max(g.need-inPlace, 1)); a != nil {
			b.carryOut(g, a)
			return
		}
		if enough {
			g.out.Placed = inPlace
			b.noHelpForGang(g)
			return
		}
	}
	if inPlace > 0 {
		b.takeBack(g)
	}
	if a := b.bestAttempt(g, g.left, g.need); a != nil {
		b.carryOut(g, a)
		return
	}
	b.noHelpForGang(g)
}

// scattered reports whether the places of a gang are in several domains, though it requires one.
func (b *builder) scattered(g *gang) bool {
	return slices.ContainsFunc(g.Topologies, func(label string) bool { return len(b.State.MemberDomains(g.Key, label)) > 1 })
}

// takeBack takes the members off the nodes of their places, which are for others then.
func (b *builder) takeBack(g *gang) {
	for _, pod := range g.inPlace {
		b.State.Remove(pod.UID)
		b.gangs.moved[pod.UID] = true
	}
	b.plan.Fitting = slices.DeleteFunc(b.plan.Fitting, func(f autoscaler.Fitting) bool { return b.gangs.byMember[f.Pod.UID] == g })
	for n, place := range b.gangs.places { // in any order: each concerns its own node
		if b.gangs.moved[b.joins[n].With] {
			b.joins[n].With = b.stays(place)
		}
	}
	g.out.Anew, g.inPlace, g.left = true, nil, g.Members
	b.gangs.kept++
}

// stays returns a pod that stays in a place, "" when none does.
func (b *builder) stays(place *autoscaler.Place) types.UID {
	for _, uid := range place.Pods {
		if !b.gangs.moved[uid] {
			return uid
		}
	}
	return ""
}

// givenUp returns how many coming nodes of each group that aren't registered had places only for
// members that were taken back.
func (b *builder) givenUp() map[string]int {
	if len(b.gangs.moved) == 0 {
		return nil
	}
	out := map[string]int{}
	for i := range b.req.Places {
		if p := &b.req.Places[i]; p.Node == "" && b.stays(p) == "" {
			out[p.Group]++
		}
	}
	return out
}

// noHelpForGang has the plan say why no purchase helps the members of a gang that have no place.
func (b *builder) noHelpForGang(g *gang) {
	if !b.mayBuyFor(g) {
		return // whether nodes would help isn't asked
	}
	f := b.gangs.failed[g.shape]
	same := f != nil && f.kept == b.gangs.kept
	if same && f.help != nil && f.inPlace == len(g.inPlace) {
		b.plan.NoHelp = append(b.plan.NoHelp, autoscaler.NoHelp{Pods: uids(expander.Pods{g.left}), Reasons: slices.Clone(f.help.Reasons), Later: f.help.Later})
		return
	}
	b.gangs.work += len(g.left) + len(b.models)
	help := autoscaler.NoHelp{Pods: uids(expander.Pods{g.left}), Reasons: b.whyNot(g), Later: g.cut || b.mayHelpLater(g)}
	if same {
		f.help, f.inPlace = &help, len(g.inPlace)
	}
	b.plan.NoHelp = append(b.plan.NoHelp, help)
}
