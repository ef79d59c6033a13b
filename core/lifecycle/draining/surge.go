package draining

// This file requests the successors of pods before the pods are evicted. A Deployment of one replica that rolls
// makes the pod of its new ReplicaSet, and deletes the old one when the new is available: so
// there is no moment without one. It rolls when its pod template changes, which is asked of it
// by an annotation (step.Surge). What must be true: for each pod that is asked at most once in
// a drain, and nothing has to be known after a restart: a pod whose Deployment rolls is
// replaced whoever watches.

import (
	"fmt"

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
	t.Ready.Surges = append(t.Ready.Surges, step.Surge{UID: p.uid, Node: d.node, Namespace: now.Object.Namespace, Deployment: now.Deployment(), At: t.Now})
	d.homes.SuccessorRequested(t, now)
}

// noSurge has a surging pod be evicted as others are.
func (p *pod) noSurge(why string) {
	p.stage, p.surge, p.why = waiting, false, "without a surged replacement: "+why
}

// SurgeDone takes the outcome of a surge. One that isn't waited for any more changes nothing.
func (d *Drain) SurgeDone(in step.SurgeDone) {
	if in.Err == nil || len(d.tiers) == 0 {
		return
	}
	for _, p := range d.tiers[0] {
		if p.uid == in.UID && p.stage == surging {
			p.noSurge(fmt.Sprint(in.Err))
		}
	}
}
