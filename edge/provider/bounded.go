package provider

import (
	"context"
	"log/slog"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/door"
)

// Bounded is a provider that offers only the node groups that somebody named, within the limits
// that came with the names: what --nodes=MIN:MAX:NAME asks for, whatever the provider. A node of
// any other group belongs to no group: Berth places pods on it and never removes it.
type Bounded struct {
	nodegroup.Provider
	bounds map[string]nodegroup.Bound
	order  []nodegroup.Bound // as they were given
	log    *slog.Logger

	mu   sync.Mutex
	said door.Complaints // guarded by mu
}

// What is wrong with a bound.
const (
	missing = "--nodes names a node group that the provider does not list; it is ignored until it does"
	wider   = "--nodes has a higher maximum than the provider, which may refuse to exceed its own; raise it there, too"
)

// Bound returns the groups of a provider that bounds name. Each name may be there once. Limits are those
// of the bounds even where the provider has narrower ones: as with Cluster Autoscaler the flag wins, and
// the provider may refuse what goes beyond its own.
func Bound(p nodegroup.Provider, bounds []nodegroup.Bound, log *slog.Logger) *Bounded {
	out := &Bounded{Provider: p, bounds: map[string]nodegroup.Bound{}, order: bounds, log: log, said: door.Complaints{}}
	for _, b := range bounds {
		out.bounds[b.Name] = b
	}
	return out
}

// Groups implements nodegroup.Provider. A name that the provider doesn't know is a warning: the
// group may be made later.
func (p *Bounded) Groups(ctx context.Context) ([]nodegroup.Group, error) {
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
		p.warn(g.ID, wider, g.Unreadable == "" && b.Max > g.Max, "nodes", b.Max, "provider", g.Max)
		g.Min, g.Max = b.Min, b.Max
		out = append(out, g)
	}
	for _, b := range p.order {
		p.warn(b.Name, missing, !known[b.Name], "groups of the provider", len(all))
	}
	return out, nil
}

// warn logs what is wrong with the bound of a group when it has become so.
func (p *Bounded) warn(group, wrong string, holds bool, more ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := ""
	if holds {
		why = wrong
	}
	if p.said.IsNews(group+": "+wrong, why) && holds {
		p.log.Warn(wrong, append([]any{"group", group}, more...)...)
	}
}

// GroupOf implements nodegroup.Provider.
func (p *Bounded) GroupOf(node *v1.Node) string {
	id := p.Provider.GroupOf(node)
	if _, named := p.bounds[id]; !named {
		return ""
	}
	return id
}
