package devices

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// What claims typically take, and how many such claims a node has places for: the measure by which
// devices are kept together. It is the idea of fragmentation gradient descent ("Beware of Fragmentation",
// USENIX ATC 2023): a pod goes where it costs the claims that are usual in the cluster the fewest places.
//
// What is usual follows from the claims that have devices, so it is the same after a restart. Counts are
// taken in powers of two: nearly all changes leave them as they are, and a change of them touches every
// node with devices.

// Kind is what claims are counted by: how many units of a driver they take, and how much of each.
type Kind struct {
	Driver        string
	Units, Amount int32
}

// usual is a kind with its weight.
type usual struct {
	Kind
	weight int64
}

// maxUsual is how many kinds are looked at: those that weigh most.
const maxUsual = 64

// workload counts the claims that have devices.
type workload struct {
	followed bool
	kinds    map[Kind]int
	// unweighed is set when a count has another power of two than the weights.
	unweighed bool
	usual     []usual // by falling weight
	weights   int64   // for how many claims they stand
	turned    bool    // see Turned
}

// FollowWorkload has the inventory count claims from now on, and keep how much of its units is free.
func (v *Inventory) FollowWorkload() {
	if v.followed {
		return
	}
	v.followed, v.kinds = true, map[Kind]int{}
	for _, p := range v.pools {
		v.recount(p)
	}
	v.weigh()
}

// Turned reports whether the last Settle has changed what is usual: then Lost may say something else of
// every node with devices.
func (v *Inventory) Turned() bool { return v.turned }

// recount measures a pool anew, and counts its claims.
func (v *Inventory) recount(p *pool) {
	p.measure()
	for _, k := range p.kinds {
		v.countKind(k, -1)
	}
	p.kinds = p.kindsOfClaims(p.kinds[:0])
	for _, k := range p.kinds {
		v.countKind(k, 1)
	}
}

func (v *Inventory) countKind(k Kind, delta int) {
	was := v.kinds[k]
	if v.kinds[k] = was + delta; v.kinds[k] == 0 {
		delete(v.kinds, k)
	}
	v.unweighed = v.unweighed || bits.Len(uint(was)) != bits.Len(uint(was+delta))
}

// kindsOfClaims appends the kind of each claim of a pool, as far as it takes units of this one.
func (p *pool) kindsOfClaims(out []Kind) []Kind {
	for _, c := range p.claims {
		k := Kind{Driver: p.Driver}
		results := c.Status.Allocation.Devices.Results
		for i := range results {
			r := &results[i]
			if x, ok := p.units.devices[r.Device]; ok && r.Pool == p.Name && r.Driver == p.Driver && (r.AdminAccess == nil || !*r.AdminAccess) {
				k.Units++
				k.Amount = max(k.Amount, p.amount(x.device, r))
			}
		}
		if k.Amount > 0 {
			out = append(out, k)
		}
	}
	return out
}

// weigh finds what is usual, and records whether it has changed. The weight of a kind is what it takes,
// as often as there are claims of it.
func (v *Inventory) weigh() {
	if !v.unweighed {
		return
	}
	v.unweighed = false
	var list []usual
	for k, n := range v.kinds {
		list = append(list, usual{k, int64(k.Units) * int64(k.Amount) << (bits.Len(uint(n)) - 1)})
	}
	slices.SortFunc(list, func(a, b usual) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.Driver, b.Driver), cmp.Compare(a.Units, b.Units), cmp.Compare(a.Amount, b.Amount))
	})
	if list = list[:min(len(list), maxUsual)]; slices.Equal(list, v.usual) {
		return
	}
	v.usual, v.turned, v.weights = list, true, 0
	for _, u := range list {
		v.weights += u.weight / (int64(u.Units) * int64(u.Amount))
	}
}

// Share is how much of a node's CPU and memory is free, before and after a pod is placed, in parts of
// Shares. Devices can't be used without their part of these: an eighth of eight devices' node.
type Share struct{ Before, After int64 }

// Shares is all of a node.
const Shares = 1 << 20

// Lost returns what uses cost the usual claims on a node, in thousandths of a unit: the sum over the
// claims of how many places they lose, times what they take, divided by their number. It doesn't
// allocate.
func (v *Inventory) Lost(i int32, uses []Use, free Share) (lost int64) {
	if i < 0 || int(i) >= len(v.views) || v.weights == 0 {
		return 0
	}
	w := &v.views[i]
	for k := range v.usual {
		u := &v.usual[k]
		units, before, taken := w.places(&u.Kind, uses)
		if units == 0 {
			continue
		}
		after := before - taken
		if u.Units > 1 { // they need units together
			before, after = before/int64(u.Units), after/int64(u.Units)
		}
		size := int64(u.Units) * int64(u.Amount)
		before = min(before, free.Before*units*whole/(Shares*size))
		after = min(after, free.After*units*whole/(Shares*size))
		lost += u.weight * (before - after)
	}
	return lost / v.weights
}

// places returns how many units a node has of a kind's driver, and how often a unit has room for the
// amount of the kind (at most once if it needs several units): now, and how many of these uses take.
func (w *view) places(k *Kind, uses []Use) (units, now, taken int64) {
	room := func(free int32) int64 {
		if k.Units > 1 {
			return int64(min(free/k.Amount, 1))
		}
		return int64(free / k.Amount)
	}
	for at, p := range w.pools {
		if p.Driver != k.Driver {
			continue
		}
		units += int64(len(p.units.free))
		for _, free := range p.units.free {
			now += room(free)
		}
		for _, u := range uses {
			if int(u.Pool) == at {
				free := p.units.free[u.Unit]
				taken += room(free) - room(max(free-u.Amount, 0))
			}
		}
	}
	return units, now, taken
}

// Usual returns the kinds that are usual, by falling weight.
func (v *Inventory) Usual() (out []Kind) {
	for _, u := range v.usual {
		out = append(out, u.Kind)
	}
	return out
}

// settleWorkload counts the claims of pools of which something has changed.
func (v *Inventory) settleWorkload() {
	if !v.followed {
		return
	}
	for p := range maps.Keys(v.stale) {
		v.recount(p)
	}
	v.weigh()
}
