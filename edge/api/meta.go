package api

import (
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers meta, which tells a client what to ask for.
//
// What must hold: an instance that stands by answers without its core, whose state is old; and what a capability
// says is answered, so that a page whose path would be an error is never offered.

// meta answers meta. An instance that stands by says so without asking its core.
func (a *API) meta(r *request) (any, error) {
	m := a.opt.Meta()
	m.At, m.Tick.Duration = a.opt.Now().UTC(), tick
	// Of a live cluster the time is the server's; a file has its own, at which it ended.
	if m.Now.IsZero() {
		m.Now = m.At
	}
	m.Viewer = v1alpha1.Viewer{Name: r.viewer.name(), AllNamespaces: r.viewer.all}
	m.Capabilities.WhatIf = a.opt.WhatIf
	if m.Profiles == nil {
		m.Profiles = []string{}
	}
	// Profiles and capabilities of an instance that stands by are left empty: its core has decided nothing, and clients
	// wait for the leader anyway.
	if !m.Leading {
		return m, nil
	}
	x, _, err := a.questions.of(r.Context(), "meta", func(c *core.Core) (any, error) { return learn(c), nil })
	if err != nil {
		return nil, err
	}
	learnt := x.(*v1alpha1.Meta)
	m.Rules, m.Profiles = learnt.Rules, learnt.Profiles
	if learnt.Capabilities.Shadow {
		m.Mode = learnt.Mode
	}
	// The core says what it can do, and the server what it lets people ask: each knows nothing of the other's.
	own := m.Capabilities
	m.Capabilities = learnt.Capabilities
	m.Capabilities.WhatIf, m.Capabilities.Replay, m.Capabilities.Seek, m.Capabilities.Outcomes = own.WhatIf, own.Replay, own.Seek, own.Outcomes
	return m, nil
}

// learn returns what a core knows of itself.
func learn(c *core.Core) *v1alpha1.Meta {
	v := c.View()
	m := &v1alpha1.Meta{Rules: v.State.Schema.Version().String()}
	for _, p := range v.Profiles {
		m.Profiles = append(m.Profiles, p.SchedulerName)
	}
	m.Capabilities.Autoscaling = v.Autoscaler != nil
	if c.ShadowReport() != nil {
		m.Mode, m.Capabilities.Shadow = v1alpha1.ModeShadow, true
	}
	// One price is enough to show money; nodes without one are counted beside it (unpriced).
	for _, g := range v.State.Groups() {
		m.Capabilities.Prices = m.Capabilities.Prices || g.Price > 0
	}
	v.State.EachObject(cluster.PodGroupKind, func(cluster.Object) { m.Capabilities.PodGroups = true })
	v.State.EachObject(cluster.ResourceSliceKind, func(cluster.Object) { m.Capabilities.Devices = true })
	return m
}
