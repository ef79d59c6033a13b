package explain

// This file explains to people what pods wait for that their node can't resize in place.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
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
	switch kept, _ := v.Autoscaler.Homes.Kept(p.UID); {
	case x.Moves && x.Why != "":
		out += "; it is to move: " + x.Why
	case x.Moves:
		out += "; it is being evicted"
		if kept.Node != "" { // its replacement hasn't taken the room yet
			out += ", and node " + kept.Node + " has room for its replacement"
		}
	case x.Why != "":
		out += "; " + x.Why
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
