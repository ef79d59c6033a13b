package explain

// This file explains to people what pods wait for that their node can't resize in place.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/resizing"
)

// resizeOf says what the resize of a pod on a node waits for; "" when none is pending.
func (v *View) resizeOf(p *cluster.Pod) string {
	n, reason := v.State.NodeOf(p.UID), cluster.PendingResize(p.Object)
	if n == nil || reason == "" {
		return ""
	}
	out := fmt.Sprintf("its in-place resize is %s: %s", reason, cluster.ResizeLack(v.State, p, n))
	if v.Autoscaler == nil {
		return out
	}
	x, ok := v.Autoscaler.Resizes.Describe(p.UID)
	if !ok {
		return out
	}
	out += fmt.Sprintf("; seen since %s", utcTime(x.Since).Format("2006-01-02 15:04:05"))
	if fate := v.resizeFate(&x); fate != "" {
		out += "; " + fate
	}
	return out
}

// resizeFate says what happens to a pod whose resize is pending; "" before it was looked at.
func (v *View) resizeFate(x *resizing.Description) string {
	switch {
	case !x.Moves:
		return x.Why
	case x.Why != "":
		return "it is to move: " + x.Why
	}
	out := "it is being evicted"
	if kept, _ := v.Autoscaler.Homes.Kept(x.UID); kept.Node != "" { // its replacement hasn't taken the room yet
		out += ", and node " + kept.Node + " has room for its replacement"
	}
	return out
}

// PendingResizes are the resizes in place that kubelets have not begun.
type PendingResizes struct {
	Deferred   int `json:"deferred"`   // their nodes lack room now
	Infeasible int `json:"infeasible"` // their nodes can't carry them out
	Moving     int `json:"moving"`     // pods of either that are being moved
	// Pods are these pods: those that are being moved first, then the longest pending; maxListed at most.
	Pods []PendingResize `json:"pods"`
}

// PendingResize is a pod whose resize in place is pending.
type PendingResize struct {
	Pod    string    `json:"pod"` // namespace/name
	Node   string    `json:"node"`
	Reason string    `json:"reason"` // deferred or infeasible
	Since  time.Time `json:"since"`
	Lack   string    `json:"lack"` // what the node lacks
	Moves  bool      `json:"moves,omitempty"`
	Why    string    `json:"why,omitempty"` // what happens to the pod, in words that follow its name
}

// pendingResizes returns the resizes that are pending, nil for none.
func (v *View) pendingResizes() *PendingResizes {
	list := v.Autoscaler.Resizes.Pending()
	if len(list) == 0 {
		return nil
	}
	out := &PendingResizes{Pods: []PendingResize{}}
	for i := range list {
		x := &list[i]
		if x.Reason == cluster.ResizeInfeasible {
			out.Infeasible++
		} else {
			out.Deferred++
		}
		if x.Moves {
			out.Moving++
		}
		p, n := v.State.PodOn(x.UID), v.State.NodeOf(x.UID)
		if p == nil || n == nil || len(out.Pods) == maxListed { // its node isn't known yet, or is gone
			continue
		}
		out.Pods = append(out.Pods, PendingResize{Pod: x.Pod, Node: n.Name, Reason: string(x.Reason), Since: x.Since.UTC(),
			Lack: cluster.ResizeLack(v.State, p, n), Moves: x.Moves, Why: v.resizeFate(x)})
	}
	return out
}

// resizesOn says which pods of a node wait for a resize in place, and what for; "" for none.
func (v *View) resizesOn(n *cluster.Node) string {
	var out []string
	for _, p := range n.Pods {
		if reason := cluster.PendingResize(p.Object); reason != "" {
			out = append(out, fmt.Sprintf("the in-place resize of pod %s is %s (%s)", p.Name(), reason, cluster.ResizeLack(v.State, p, n)))
		}
	}
	slices.Sort(out)
	if rest := len(out) - maxResizes; rest > 0 {
		out = append(out[:maxResizes], fmt.Sprintf("%d more are pending", rest))
	}
	return strings.Join(out, ", ")
}

// maxResizes is how many pods a node's explanation names.
const maxResizes = 5
