package api

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers whatif. It costs the core as much as a plan, so numbers are checked before it is asked, and a
// right of its own guards the path.
//
// What must hold: the question runs under a mark and is taken back, whatever comes of it (core/explain/whatif.go);
// and the answer is cut to what a page can show only after everything was counted.

const (
	// maxRemoved is how many nodes a what-if removes, maxMore how many pods it adds, and maxMoves how many
	// moves and nodes it lists.
	maxRemoved, maxMore, maxMoves = 20, 1000, 200
)

// errNoWhatIf says that what-ifs are off.
var errNoWhatIf = errors.New("what-ifs are not answered here; Berth has to run with --what-if")

// whatIf answers whatif?remove=NODE, which may be repeated, and whatif?pods=NUMBER&like=NAMESPACE/NAME.
func (a *API) whatIf(r *request) (any, error) {
	if !a.opt.WhatIf {
		return nil, notFound{errNoWhatIf}
	}
	// Sorted and each once, so that the same question in another order is the same question.
	remove, like := slices.Compact(slices.Sorted(slices.Values(r.query["remove"]))), r.query.Get("like")
	pods, err := number(r.query, "pods", 1, 1, maxMore)
	switch {
	case err != nil:
		return nil, badRequest{err}
	case (len(remove) == 0) == (like == ""):
		return nil, bad("give remove=NODE, or pods=NUMBER and like=NAMESPACE/NAME")
	case len(remove) > maxRemoved:
		return nil, bad("remove names %d nodes; it may name %d at most", len(remove), maxRemoved)
	case like != "":
		return a.morePods(r, pods, like)
	}
	return a.lessNodes(r, remove)
}

// lessNodes answers what would become of the pods of nodes that are removed: where each would go, or why it would wait.
// Counts are of all pods, moves of those that the viewer may read. Saves is what the nodes cost an hour.
func (a *API) lessNodes(r *request, nodes []string) (any, error) {
	// Names of nodes have no slash, so the key is unambiguous.
	x, at, err := a.questions.of(r.Context(), "whatif/remove/"+strings.Join(nodes, "/"), func(c *core.Core) (any, error) {
		x, err := c.View().WithoutNodes(nodes)
		if err != nil {
			return nil, notFound{err}
		}
		return x, nil
	})
	if err != nil {
		return nil, err
	}
	without := x.(*explain.WithoutNodes)
	out := v1alpha1.WhatIf{At: at, Removed: nodes, Saves: v1alpha1.Price(without.Price)}
	for _, p := range without.Pods {
		if p.Home == "" {
			out.Left++
		} else {
			out.Placed++
		}
		// Counted above all the same: what removing a node would leave without room isn't a viewer's own pods alone.
		if r.viewer.pod(p.Pod) == "" {
			out.Hidden++
			continue
		}
		// Why a pod finds no node may name its claims, so that only the pods that may be read say it.
		if p.Home == "" {
			out.Why = cmp.Or(out.Why, p.Why)
		}
		if len(out.Moves) < maxMoves {
			out.Moves = append(out.Moves, v1alpha1.Move{Pod: p.Pod, Node: p.Home, Why: p.Why})
		}
	}
	return out, nil
}

// morePods answers where pods would go that are like one: on which nodes as they are, and what node groups say of those
// that are left. The pod that they are like may wait or have a node, and stays what it is.
func (a *API) morePods(r *request, pods int, like string) (any, error) {
	namespace, name, ok := strings.Cut(like, "/")
	// As for a pod that isn't there, and before the core is asked.
	if !ok || r.viewer.pod(like) == "" {
		return nil, missing("pod %s not found; it may have finished, or you may not list pods in its namespace", like)
	}
	x, at, err := a.questions.of(r.Context(), "whatif/like/"+r.query.Encode(), func(c *core.Core) (any, error) {
		x, ok := c.View().MorePods(namespace, name, pods)
		if !ok {
			return nil, missing("pod %s not found, or not one of Berth's profiles", like)
		}
		return x, nil
	})
	if err != nil {
		return nil, err
	}
	more := x.(*explain.MorePods)
	out := v1alpha1.WhatIf{At: at, Pods: pods, Like: like, Placed: more.Placed, Left: pods - more.Placed, Why: more.Why}
	for i := range more.Groups {
		out.Groups = append(out.Groups, groupAnswer(&more.Groups[i]))
	}
	// Nodes are for every viewer; that the made-up pods would go there tells nothing of pods that are there.
	for node, n := range more.Nodes { // sorted below
		out.Nodes = append(out.Nodes, v1alpha1.WhatIfNode{Node: node, Pods: n})
	}
	slices.SortFunc(out.Nodes, func(a, b v1alpha1.WhatIfNode) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.Node, b.Node))
	})
	out.Nodes = out.Nodes[:min(len(out.Nodes), maxMoves)]
	return out, nil
}
