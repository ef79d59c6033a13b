// Package bounded has a provider offer only the node groups that somebody named, within the
// limits that came with the names: what --nodes=MIN:MAX:NAME asks for, whatever the provider.
package bounded

import (
	"context"
	"log/slog"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// Provider is a provider with some of its groups. A node of any other group belongs to no group:
// Berth places pods on it and never removes it.
type Provider struct {
	nodegroup.Provider
	bounds map[string]nodegroup.Bound
	order  []nodegroup.Bound // as they were given
	log    *slog.Logger

	mu     sync.Mutex
	warned map[warning]bool
}

// warning is something that is said of a group once, until it is no longer so.
type warning struct {
	group string
	about about
}

type about uint8

const (
	missing about = iota // the provider has no such group
	wider                // the bound's maximum is above the provider's own
)

// New returns the groups of a provider that bounds name. Each name may be there once.
func New(p nodegroup.Provider, bounds []nodegroup.Bound, log *slog.Logger) *Provider {
	out := &Provider{Provider: p, bounds: map[string]nodegroup.Bound{}, order: bounds, log: log, warned: map[warning]bool{}}
	for _, b := range bounds {
		out.bounds[b.Name] = b
	}
	return out
}

// Groups implements nodegroup.Provider. A name that the provider doesn't know is a warning: the
// group may be made later.
func (p *Provider) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	all, err := p.Provider.Groups(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]nodegroup.Group, 0, len(p.bounds))
	known := map[string]bool{}
	for _, g := range all {
		b, named := p.bounds[g.ID]
		if !named {
			continue
		}
		known[g.ID] = true
		p.warn(warning{g.ID, wider}, g.Unreadable == "" && b.Max > g.Max,
			"--nodes has a maximum above that of the provider, which may refuse what is above its own; raise it there, too", "group", g.ID, "nodes", b.Max, "provider", g.Max)
		g.Min, g.Max = b.Min, b.Max
		out = append(out, g)
	}
	for _, b := range p.order {
		p.warn(warning{b.Name, missing}, !known[b.Name],
			"--nodes names a node group that the provider doesn't have; it is left out until the provider has it", "group", b.Name, "groups of the provider", len(all))
	}
	return out, nil
}

// warn logs a message when something has become so.
func (p *Provider) warn(w warning, holds bool, message string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if holds && !p.warned[w] {
		p.log.Warn(message, args...)
	}
	p.warned[w] = holds
}

// GroupOf implements nodegroup.Provider.
func (p *Provider) GroupOf(node *v1.Node) string {
	id := p.Provider.GroupOf(node)
	if _, named := p.bounds[id]; !named {
		return ""
	}
	return id
}
