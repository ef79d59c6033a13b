package api

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/berthproject/berth/core/step"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// Ledger has the last decisions. Several goroutines ask it at the same time, and whoever adds decisions waits for one
// call at most.
type Ledger interface {
	// Range returns the numbers of the oldest and the newest decision that are kept, 0 and 0 for none.
	Range() (first, last uint64)
	// Chunk returns the decisions from a number on, the oldest first: so many at most. Those before
	// first are left out.
	Chunk(from uint64, most int) []step.Decision
	// Of, OfPodGroup, OfGroup and OfNode return the last decisions about a pod or a pod group (namespace/name), a
	// node group or the removal of a node, the oldest first.
	Of(pod string) []step.Decision
	OfPodGroup(group string) []step.Decision
	OfGroup(group string) []step.Decision
	OfNode(node string) []step.Decision
}

// chunk is how many decisions are read at a time. The ledger is locked while a chunk is copied, so it bounds for how long
// a viewer holds up whoever adds a decision.
const chunk = 512

// scan calls f for the decisions of a ledger, the newest first, until it returns false.
func scan(l Ledger, f func(*step.Decision) bool) {
	// The ledger goes on while it is read, and drops its oldest: what was dropped since is left out by Chunk, and what has
	// come since isn't asked for.
	first, last := l.Range()
	for last >= first && last > 0 {
		from := first
		if last-first >= chunk {
			from = last - chunk + 1
		}
		list := l.Chunk(from, int(last-from)+1)
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Seq <= last && !f(&list[i]) {
				return
			}
		}
		last = from - 1
	}
}

// run is decisions of one kind, about one node group or about none, that follow each other.
type run struct {
	last step.Decision
	more int // how many came before it
}

// runs returns the last runs of a ledger, the oldest first: limit at most.
func runs(l Ledger, limit int) (out []run) {
	seen := 0
	scan(l, func(d *step.Decision) bool {
		if n := len(out); n > 0 && out[n-1].last.Kind == d.Kind && out[n-1].last.Group == d.Group {
			out[n-1].more++
		} else if n == limit {
			return false
		} else {
			out = append(out, run{last: *d})
		}
		seen++
		// A ledger with one kind of decision only would be read whole for one line; this bounds it to a few chunks.
		return seen < 4*chunk
	})
	slices.Reverse(out)
	return out
}

// detail is how much of a decision is answered.
type detail int

const (
	whole detail = iota
	brief        // without scores, rejections and options
)

// decision returns a decision for a viewer. Of one about a pod that he may not read there is its kind, its
// time, its node and its group; and what may name any pod is only for a viewer from whom none is hidden.
func decision(v *viewer, d *step.Decision, how detail) v1alpha1.Decision {
	out := v1alpha1.Decision{Seq: d.Seq, Time: d.Time.UTC(), Kind: string(d.Kind), Node: d.Node, Group: d.Group, Nodes: d.Nodes, Members: d.Members, Profile: d.Profile, Score: d.Score}
	// The viewer needs the right to read the pod that the decision is about. Victims are named by the rights to each of them.
	about := cmp.Or(d.Pod, d.PodGroup)
	if about != "" && v.pod(about) == "" {
		out.Hidden = true
		return out
	}
	out.Pod, out.PodGroup = d.Pod, d.PodGroup
	hidden := 0
	// The sentence is made of all fields at once. So it is left out whole where one of them may not be shown, rather than
	// searched for names.
	// The first part is a decision about a pod with victims elsewhere, the second one whose reason may name other pods: one about
	// nodes, and what the API server has said of a victim.
	names := about == "" || d.Kind == step.PreemptionFailed
	if out.Victims, hidden = v.pods(d.Victims); hidden > 0 || names && !v.all {
		out.Hidden = hidden > 0 || d.Reason != "" || d.Headroom != ""
	} else {
		out.Text, out.Reason, out.Headroom = d.String(), d.Reason, d.Headroom
	}
	if how == brief {
		return out
	}
	out.Scores = scores(d.Scores)
	if u := d.RunnerUp; u != nil {
		out.RunnerUp = &v1alpha1.RunnerUp{Node: u.Node, Score: u.Score}
	}
	out.Rejections, out.Choice = rejections(d.Rejected), choice(d.Choice, d.Group)
	return out
}

// filter is which decisions are asked for.
type filter struct {
	kinds, pods, nodes, groups []string
	before, since              uint64 // 0 for none
	from, to                   time.Time
}

// newFilter reads the filter of a query. Values of one parameter are alternatives, different parameters must all match, and
// names are compared whole.
func newFilter(r *request) (f filter, err error) {
	f.kinds, f.pods, f.nodes, f.groups = r.query["kind"], r.query["pod"], r.query["node"], r.query["group"]
	// The order of the two doesn't matter: the first error is as good as the second.
	for name, to := range map[string]*uint64{"before": &f.before, "since": &f.since} {
		if r.query.Has(name) {
			if *to, err = strconv.ParseUint(r.query.Get(name), 10, 64); err != nil {
				return f, bad("%s is %q; it must be the number of a decision", name, r.query.Get(name))
			}
		}
	}
	for name, to := range map[string]*time.Time{"from": &f.from, "to": &f.to} {
		if r.query.Has(name) {
			if *to, err = time.Parse(time.RFC3339, r.query.Get(name)); err != nil {
				return f, bad("%s is %q; it must be a time such as 2026-01-31T12:00:00Z", name, r.query.Get(name))
			}
		}
	}
	return f, nil
}

// takes reports whether a decision is asked for.
func (f *filter) takes(d *step.Decision) bool {
	among := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return among(f.kinds, string(d.Kind)) && among(f.pods, d.Pod) && among(f.nodes, d.Node) && among(f.groups, d.Group) &&
		(f.before == 0 || d.Seq < f.before) && (f.to.IsZero() || !d.Time.After(f.to))
}

// ended reports whether no decision is asked for that is as old as this one. Times and numbers rise together, so the walk
// from the newest may end here.
func (f *filter) ended(d *step.Decision) bool {
	return d.Seq <= f.since || !f.from.IsZero() && d.Time.Before(f.from)
}

// decisions answers decisions: the newest that match, the oldest first.
func (a *API) decisions(r *request) (any, error) {
	f, err := newFilter(r)
	if err != nil {
		return nil, err
	}
	limit, err := number(r.query, "limit", 100, 1, 1000)
	if err != nil {
		return nil, badRequest{err}
	}
	out := v1alpha1.DecisionList{At: a.clusterTime(a.opt.Now()).UTC(), Epoch: a.opt.Meta().Epoch, Items: []v1alpha1.Decision{}}
	out.First, out.Last = a.opt.Ledger.Range()
	// An error would tell that there is such a pod, and a hidden entry that something was decided about it.
	for _, name := range f.pods {
		if r.viewer.pod(name) == "" {
			return out, nil // as of a pod that isn't there
		}
	}
	scan(a.opt.Ledger, func(d *step.Decision) bool {
		// Filters that match nothing read all that is kept, 65,536 decisions; a viewer who has gone ends that.
		if f.ended(d) || r.Context().Err() != nil {
			return false
		}
		if !f.takes(d) {
			return true
		}
		if len(out.Items) == limit {
			out.More = true
			return false
		}
		out.Items = append(out.Items, decision(r.viewer, d, brief))
		return true
	})
	slices.Reverse(out.Items)
	return out, nil
}

// decision answers decisions/SEQ.
func (a *API) decision(r *request) (any, error) {
	seq, err := strconv.ParseUint(r.object, 10, 64)
	if err != nil {
		return nil, bad("%q is no number of a decision", r.object)
	}
	// The number says nothing by itself: numbers of decisions that a viewer may not read are answered, too, without names.
	list := a.opt.Ledger.Chunk(seq, 1)
	if len(list) == 0 || list[0].Seq != seq {
		first, last := a.opt.Ledger.Range()
		return nil, missing("decision %d is not kept; those from %d to %d are", seq, first, last)
	}
	out := decision(r.viewer, &list[0], whole)
	// Whoever keeps its address can tell later, when another leader counts, that the number means another decision.
	out.Epoch = a.opt.Meta().Epoch
	return out, nil
}
