package draining

// This file requests the successors of pods before the pods are evicted. A Deployment of one replica that rolls
// makes the pod of its new ReplicaSet, and deletes the old one when the new is available: so
// there is no moment without one. It rolls when its pod template changes, which is asked of it
// by an annotation (step.Surge). What must be true: for each pod that is asked at most once in
// a drain, and nothing has to be known after a restart: a pod whose Deployment rolls is
// replaced whoever watches.
//
// The members of a pod group that go together get their successors together: their Deployments are
// asked when the drains of all their nodes are so far, and each rolls only if all may. None of the
// members is evicted: when one gets no successor, all nodes stay that have members still.

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// surges reports whether a pod's Deployment is to make its successor first. None is asked for
// that nobody would wait for.
func (c *Config) surges(p *cluster.Pod) bool {
	return c.Surge && c.MaxEviction > 0 && p.WantsSurge() && p.Deployment() != ""
}

// surge asks a pod's Deployment for a successor.
func (d *Drain) surge(t *lifecycle.Turn, p *pod, now *cluster.Pod) {
	p.stage, p.until, d.begun = surging, t.Now.Add(d.cfg.MaxEviction), true
	t.Decide(step.Decision{Kind: step.PodSurged, Pod: now.Name(), Node: d.node})
	t.Emit(step.PodEvent(now.Object, "ScaleDown", "ScalingDown", "surging a replacement before evicting the pod for node scale down"))
	x := step.Surge{UID: p.uid, Node: d.node, Namespace: now.Object.Namespace, Deployment: now.Deployment(), At: t.Now}
	if p.group != nil {
		x.At, x.With = d.set.Began, deploymentsBeside(t.State, *p.group, x.Deployment)
	}
	t.Ready.Surges = append(t.Ready.Surges, x)
	d.homes.SuccessorRequested(t, now)
}

// noSurge has a surging pod be evicted as others are.
func (p *pod) noSurge(why string) {
	p.stage, p.surge, p.why = waiting, false, "without a surged replacement: "+why
}

// deploymentsBeside returns the Deployments of a group's members but one, sorted.
func deploymentsBeside(s *cluster.State, group cluster.PodGroupKey, own string) (out []string) {
	s.EachPlacedMember(group, func(m *cluster.Pod) {
		if name := m.Deployment(); name != own && name != "" && m.Object.DeletionTimestamp == nil {
			out = append(out, name)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// meet has members in the first tier wait until the drains of their group's other nodes are as far; then
// held is set. It returns why they can't have successors, "" if they can.
func (d *Drain) meet(t *lifecycle.Turn) (why string) {
	d.held = false
	if d.set == nil || len(d.tiers) == 0 {
		return ""
	}
	for _, p := range d.tiers[0] {
		if p.group == nil || p.stage != waiting {
			continue
		}
		why := t.State.WhyNoSuccessors(*p.group)
		t.State.EachPlacedMember(*p.group, func(m *cluster.Pod) {
			if m.Object.DeletionTimestamp != nil {
				return
			}
			n := t.State.NodeOf(m.UID)
			leaves, ready := d.set.Node(n.Name, *p.group)
			if !leaves && why == "" {
				why = fmt.Sprintf("%s is on node %s, which stays", m.Name(), n.Name)
			}
			d.held = d.held || !ready
		})
		if why != "" {
			return fmt.Sprintf("the members of pod group %s all get successors before one of them leaves, and %s", p.group, why)
		}
	}
	return ""
}

// Held reports whether members wait for the drain of another node.
func (d *Drain) Held() bool { return d.held }

// Later reports whether members of a group are in a tier whose turn hasn't come.
func (d *Drain) Later(group cluster.PodGroupKey) bool {
	return len(d.tiers) > 1 && slices.ContainsFunc(d.tiers[1:], func(tier []*pod) bool {
		return slices.ContainsFunc(tier, func(p *pod) bool { return p.group != nil && *p.group == group })
	})
}

// Surging reports whether members of a pod group are there that aren't evicted, nor any other, when one
// gets no successor.
func (d *Drain) Surging() bool {
	return slices.ContainsFunc(d.tiers, func(tier []*pod) bool {
		return slices.ContainsFunc(tier, func(p *pod) bool { return p.group != nil && p.stage <= surging })
	})
}

// alone returns why a surging member of a group got no successor, "" while one is awaited.
func (d *Drain) alone(t *lifecycle.Turn, p *pod, now *cluster.Pod) string {
	why := p.why
	if why == "" && !t.Now.Before(p.until) {
		why = fmt.Sprintf("it was not available within %s", d.cfg.MaxEviction)
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("pod %s got no successor, and no member of pod group %s leaves without: %s", now.Name(), p.group, why)
}

// SurgeDone takes the outcome of a surge. One that isn't waited for any more changes nothing.
func (d *Drain) SurgeDone(in step.SurgeDone) {
	if in.Err == nil || len(d.tiers) == 0 {
		return
	}
	for _, p := range d.tiers[0] {
		switch {
		case p.uid != in.UID || p.stage != surging:
		case p.group != nil:
			p.why = in.Err.Error()
		default:
			p.noSurge(fmt.Sprint(in.Err))
		}
	}
}
