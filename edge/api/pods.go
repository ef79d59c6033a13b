package api

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers pods and pending. Lists of pods are made of one answer of the core, O(pods), which is shared and
// must not be changed; a list of pending pods alone asks for those alone, which are fewer by far.
//
// What must hold: total counts what is hidden, and a filter by a name or by a reason, which may have names in it, never does:
// whoever may not read a pod can't learn by asking whether one is called so.

// podLines are all pods, by namespace and name; they are shared.
type podLines struct{ all []explain.PodLine }

// comparePods orders pods by namespace, then by name: the order in which pages of them continue.
func comparePods(a, b *explain.PodLine) int {
	return cmp.Or(strings.Compare(a.Object.Namespace, b.Object.Namespace), strings.Compare(a.Object.Name, b.Object.Name))
}

// podLines asks for all pods. Sorting them is left to whoever has asked first: it needs no core.
func (a *API) podLines(r *request) (*podLines, time.Time, error) {
	return a.lines(r, "pods", func(v *explain.View) []explain.PodLine { return append(v.PendingLines(), v.PlacedLines()...) })
}

// pendingLines asks for the pods without a node.
func (a *API) pendingLines(r *request) (*podLines, time.Time, error) {
	return a.lines(r, "pods/pending", (*explain.View).PendingLines)
}

// lines asks for a list of pods by a key of its own, and sorts it.
func (a *API) lines(r *request, key string, list func(*explain.View) []explain.PodLine) (*podLines, time.Time, error) {
	x, at, err := a.questions.preparedPageOf(r, key, func(c *core.Core) (any, error) { return list(c.View()), nil }, func(x any) any {
		lines := x.([]explain.PodLine)
		slices.SortFunc(lines, func(a, b explain.PodLine) int { return comparePods(&a, &b) })
		return &podLines{lines}
	})
	if err != nil {
		return nil, at, err
	}
	return x.(*podLines), at, nil
}

// pods answers pods, by namespace and name. It costs O(pods) for each request that isn't of pending pods alone: matching
// is done for everybody anew, outside of the core's goroutine.
func (a *API) pods(r *request) (any, error) {
	ask := a.podLines
	switch r.query.Get("state") {
	case "", string(v1alpha1.Placed), "all":
	// With 50,000 placed pods and few that wait, this is what keeps the usual question cheap.
	default:
		ask = a.pendingLines
	}
	lines, at, err := ask(r)
	if err != nil {
		return nil, err
	}
	out := v1alpha1.PodList{List: v1alpha1.List{At: at}, Items: []v1alpha1.Pod{}}
	var found []*explain.PodLine
	for i := range lines.all {
		p := &lines.all[i]
		if !matchesPod(r, p) {
			continue
		}
		// sees may ask the API server once for each namespace, 64 at most; those beyond count as hidden for this answer.
		if out.Total++; !r.viewer.sees(p.Object.Namespace) {
			out.Hidden++
			continue
		}
		found = append(found, p)
	}
	found, err = page(r.query, found, func(p **explain.PodLine) string { return (*p).Object.Namespace + "\x00" + (*p).Object.Name }, &out.List)
	if err != nil {
		return nil, badRequest{err}
	}
	for _, p := range found {
		out.Items = append(out.Items, pod(p))
	}
	return out, nil
}

// matchesPod reports whether a pod is one of those that a request is for. What could tell a name of a hidden
// pod doesn't match one.
func matchesPod(r *request, p *explain.PodLine) bool {
	state := cmp.Or(p.State, string(v1alpha1.Placed))
	switch wanted := r.query.Get("state"); wanted {
	case "", "all":
	case "pending":
		if p.State == "" {
			return false
		}
	default:
		if state != wanted {
			return false
		}
	}
	for name, value := range map[string]string{"namespace": p.Object.Namespace, "node": p.Node, "plugin": p.Plugin, "reason": p.Reason} {
		if wanted := r.query[name]; len(wanted) > 0 && !slices.Contains(wanted, value) {
			return false
		}
	}
	// Up to here nothing depends on names but the reason; with it, and from here on, a match would confirm one.
	named := r.query.Get("owner") + r.query.Get("q")
	if named == "" && (len(r.query["reason"]) == 0 || p.State == explain.PendingNodeComing) {
		return true
	}
	if !r.viewer.sees(p.Object.Namespace) {
		return false
	}
	if wanted := r.query.Get("owner"); wanted != "" {
		if o := owner(p.Object); o == nil || o.Kind+"/"+o.Name != wanted {
			return false
		}
	}
	return strings.Contains(p.Object.Namespace+"/"+p.Object.Name, r.query.Get("q"))
}

// pod returns a pod in one row, made of its object and of what the core knows of it. A pod that waits for a node which is
// coming has the node's group, and when it is expected.
func pod(p *explain.PodLine) v1alpha1.Pod {
	obj := p.Object
	out := v1alpha1.Pod{
		Namespace: obj.Namespace, Name: obj.Name, Created: obj.CreationTimestamp.UTC(), Owner: owner(obj), Node: p.Node,
		State: v1alpha1.PendingState(cmp.Or(p.State, string(v1alpha1.Placed))), Reason: p.Reason, Plugin: p.Plugin, Since: p.Since, Attempts: p.Attempts,
		Scheduler: obj.Spec.SchedulerName, Requests: requests(obj),
	}
	if obj.Spec.Priority != nil {
		out.Priority = *obj.Spec.Priority
	}
	// The name alone: the group is of the pod's namespace.
	if g := obj.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		out.PodGroup = *g.PodGroupName
	}
	if p.Coming != nil {
		out.Group, out.Expected = p.Coming.Group, expectation(&p.Coming.Expectation)
	}
	return out
}

// requests returns what a pod requests, by resource.
func requests(obj *v1.Pod) (out []v1alpha1.Amount) {
	// As the scheduler counts them: with init containers, overhead and resources of the pod as a whole.
	list := resourcehelper.PodRequests(obj, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; !q.IsZero() {
			out = append(out, v1alpha1.Amount{Resource: string(name), Quantity: q})
		}
	}
	return out
}

// maxWorkloads is how many workloads of a reason are listed. A cluster of bare pods has one for each namespace.
const maxWorkloads = 200

// pending answers pending: the reasons by falling number of pods, each with its workloads by falling number. It is for
// people who ask why, where a list of pods would have one answer a thousand times.
func (a *API) pending(r *request) (any, error) {
	lines, at, err := a.pendingLines(r)
	if err != nil {
		return nil, err
	}
	// Two pods wait for the same when all three are equal; messages of preemption and of node groups are no part of it, as
	// they differ from pod to pod.
	by := map[explain.PendingCause]*pendingReasons{}
	for i := range lines.all {
		p := &lines.all[i]
		cause := explain.PendingCause{State: p.State, Reason: p.Reason, Plugin: p.Plugin}
		if by[cause] == nil {
			by[cause] = &pendingReasons{workloads: map[workload]*v1alpha1.PendingWorkload{}}
		}
		by[cause].add(r.viewer, p)
	}
	out := v1alpha1.Pending{At: at, Pods: len(lines.all), Reasons: reasonsShown(by)}
	slices.SortFunc(out.Reasons, func(a, b v1alpha1.PendingByReason) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.State, b.State), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Plugin, b.Plugin))
	})
	return out, nil
}

// reasonsShown returns what may be shown of why pods wait, in any order. Reasons that aren't shown become one for each state and
// plugin: no workload of theirs is listed, so that sums are all there is to merge.
func reasonsShown(by map[explain.PendingCause]*pendingReasons) []v1alpha1.PendingByReason {
	shown := map[explain.PendingCause]*pendingReasons{}
	for cause, x := range by { // in any order: sums, and the earliest of times, don't depend on it
		cause = shownCause(cause, x.Hidden < x.Pods)
		x.State, x.Reason, x.Plugin = v1alpha1.PendingState(cause.State), cause.Reason, cause.Plugin
		to := shown[cause]
		if to == nil {
			shown[cause] = x
			continue
		}
		// Of two that become one, one at least is hidden whole; the other has the workloads.
		if x.Hidden < x.Pods {
			x, to, shown[cause] = to, x, x
		}
		to.Pods, to.Hidden = to.Pods+x.Pods, to.Hidden+x.Hidden
		to.Since, to.Next = earlier(to.Since, x.Since), sooner(to.Next, x.Next)
	}
	out := []v1alpha1.PendingByReason{}
	for _, x := range shown { // sorted by the caller
		out = append(out, x.reason())
	}
	return out
}

// sooner returns which of two nodes was ordered first; nil is none.
func sooner(a, b *v1alpha1.Expectation) *v1alpha1.Expectation {
	if a == nil || b != nil && b.Ordered.Before(a.Ordered) {
		return b
	}
	return a
}

// workload is the controller of pods; a pod without one is a workload of its own namespace.
type workload struct{ namespace, kind, name string }

// pendingReasons are pods that wait for the same, in the making.
type pendingReasons struct {
	v1alpha1.PendingByReason
	exampleSince time.Time // of Example
	workloads    map[workload]*v1alpha1.PendingWorkload
}

// add counts a pod, and adds it to its workload if the viewer may know of it. Next is the earliest order of a node for any
// of the pods, hidden ones included: it names the group and no pod.
func (x *pendingReasons) add(v *viewer, p *explain.PodLine) {
	x.Pods++
	x.Since = earlier(x.Since, p.Since)
	if p.Coming != nil {
		x.Next = sooner(x.Next, expectation(&p.Coming.Expectation))
	}
	if !v.sees(p.Object.Namespace) {
		x.Hidden++
		return
	}
	name := p.Object.Namespace + "/" + p.Object.Name
	// The pod that has waited longest is the example: people ask about that one first.
	if x.Example == "" || p.Since.Before(x.exampleSince) {
		x.Example, x.exampleSince = name, p.Since
	}
	// Pods of all ReplicaSets of a Deployment are one workload (owner): a rollout doesn't split them.
	o := owner(p.Object)
	key := workload{namespace: p.Object.Namespace}
	if o != nil {
		key.kind, key.name = o.Kind, o.Name
	}
	w := x.workloads[key]
	if w == nil {
		w = &v1alpha1.PendingWorkload{Namespace: key.namespace, Owner: o}
		x.workloads[key] = w
	}
	if w.Pods++; w.Pods == 1 || p.Since.Before(w.Since) {
		w.Example, w.Since = name, p.Since
	}
}

// reason returns the pods with their workloads, of which maxWorkloads are listed. Pods of hidden namespaces are in Pods and
// Hidden, and in no workload: its name would be one of a namespace that the viewer may not read.
func (x *pendingReasons) reason() v1alpha1.PendingByReason {
	out := x.PendingByReason
	out.Workloads = []v1alpha1.PendingWorkload{}
	for _, w := range x.workloads { // sorted below
		out.Workloads = append(out.Workloads, *w)
	}
	slices.SortFunc(out.Workloads, func(a, b v1alpha1.PendingWorkload) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.Example, b.Example))
	})
	// The sums stay right however many workloads there are.
	for _, w := range out.Workloads[min(len(out.Workloads), maxWorkloads):] {
		out.OtherPods += w.Pods
	}
	out.Workloads = out.Workloads[:min(len(out.Workloads), maxWorkloads)]
	return out
}
