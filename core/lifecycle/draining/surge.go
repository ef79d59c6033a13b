package draining

// This file requests the successors of pods before the pods are evicted. A Deployment of one replica that rolls
// makes the pod of its new ReplicaSet, and deletes the old one when the new is available: so
// there is no moment without one. It rolls when its pod template changes, which is asked of it
// by an annotation (step.Surge). What must be true: for each pod that is asked at most once in
// a drain, and nothing has to be known after a restart: a pod whose Deployment rolls is
// replaced whoever watches.
//
// The members of a pod group that go together get their successors together: their Deployments are
// asked in one Step, when the drains of all their nodes are so far (Release). None of the members is
// evicted: when one gets no successor, all nodes stay that have members still.

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// surges reports whether a pod's Deployment is to make its successor first. None is asked for
// that nobody would wait for.
func (c *Config) surges(p *cluster.Pod) bool {
	return c.Surge && c.MaxEviction > 0 && p.WantsSurge() && p.Deployment() != ""
}

// surgesWhole reports whether a pod gets its successor with the other members of its group.
func (c *Config) surgesWhole(s *cluster.State, p *cluster.Pod) bool {
	_, whole := s.SurgesWhole(p)
	return whole && c.surges(p) && p.Object.DeletionTimestamp == nil
}

// surge asks a pod's Deployment for a successor.
func (d *Drain) surge(t *lifecycle.Turn, p *pod, now *cluster.Pod) {
	p.stage, p.until, d.begun = surging, t.Now.Add(d.cfg.MaxEviction), true
	t.Decide(step.Decision{Kind: step.PodSurged, Pod: now.Name(), Node: d.node})
	t.Emit(step.PodEvent(now.Object, "ScaleDown", "ScalingDown", "surging a replacement before evicting the pod for node scale down"))
	x := step.Surge{UID: p.uid, Node: d.node, Namespace: now.Object.Namespace, Deployment: now.Deployment(), At: t.Now, Until: p.until}
	if p.group != nil {
		x.At, x.With = d.released, deploymentsBeside(t.State, *p.group, x.Deployment)
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
	s.EachSurgedMember(group, func(m *cluster.Pod) {
		if name := m.Deployment(); name != own && name != "" {
			out = append(out, name)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// Held reports whether the first tier waits until Release, since it has members of pod groups that get their
// successors together.
func (d *Drain) Held() bool {
	return d.released.IsZero() && len(d.tiers) > 0 && slices.ContainsFunc(d.tiers[0], (*pod).waitsForMembers)
}

// Later reports whether such members are in a tier whose turn hasn't come.
func (d *Drain) Later() bool {
	return len(d.tiers) > 1 && slices.ContainsFunc(d.tiers[1:], func(tier []*pod) bool {
		return slices.ContainsFunc(tier, (*pod).waitsForMembers)
	})
}

// waitsForMembers reports whether a pod is a member that gets its successor with others, and hasn't been told
// to leave by anybody.
func (p *pod) waitsForMembers() bool { return p.group != nil && p.stage == waiting }

// Release lets a held drain go on: the other nodes of its members' groups are as far, and WhyNoSuccessors
// returned "" for each. Advance must follow in the same Turn.
func (d *Drain) Release(now time.Time) { d.released = now }

// Alone has members of pod groups go one by one from here on, as other pods do.
func (d *Drain) Alone() {
	for _, tier := range d.tiers {
		for _, p := range tier {
			if p.group != nil && p.stage == surging && p.why != "" {
				p.noSurge(p.why)
			}
			p.group = nil
		}
	}
}

// WhyNoSuccessors returns why members on this node can't get successors together with all others of their
// groups, "" if they can. leaves reports whether a node is one of those that are as far.
func (d *Drain) WhyNoSuccessors(s *cluster.State, leaves func(node string) bool) string {
	if !d.Held() {
		return ""
	}
	seen := map[cluster.PodGroupKey]bool{}
	for _, p := range d.tiers[0] {
		if !p.waitsForMembers() || seen[*p.group] {
			continue
		}
		seen[*p.group] = true
		_, why := s.WhyNoSuccessors(*p.group)
		s.EachSurgedMember(*p.group, func(m *cluster.Pod) {
			if n := s.NodeOf(m.UID); why == "" && !leaves(n.Name) {
				why = fmt.Sprintf("%s is on node %s, which does not go with it", m.Name(), n.Name)
			}
		})
		if why != "" {
			return fmt.Sprintf("the members of pod group %s all get successors before one of them leaves, and %s", p.group, why)
		}
	}
	return ""
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
	return fmt.Sprintf("pod %s got no successor, and no member of pod group %s is evicted: %s", now.Name(), p.group, why)
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
