// Package simulated is a node group provider without a cloud: asking for nodes creates
// real Node objects after a delay, which become ready after another; removing a node
// deletes its object. Launches can be slow, limited in rate, and fail. What runs on the
// nodes is somebody else's business: the dev cluster's simulated kubelets, for one.
//
//	simulated.go  the groups, and what is asked of them
//	launches.go   what happens by itself as time passes: nodes register and become ready
//	seen.go       the groups as a shadow sees them, from the nodes alone
package simulated

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// API is what the provider needs of the Kubernetes API: the client for nodes has it. Several
// goroutines call it at a time.
type API interface {
	List(ctx context.Context, opts metav1.ListOptions) (*v1.NodeList, error)
	Create(ctx context.Context, node *v1.Node, opts metav1.CreateOptions) (*v1.Node, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*v1.Node, error)
}

// Provider implements nodegroup.Provider. Its methods may be called by several
// goroutines; Advance by one at a time. The lock isn't held during API calls, so that
// Groups and GroupOf are quick.
//
// Invariant: a group's target is the number of its instances. It rises with an order,
// and falls when an instance is deleted, fails to launch or turns out to be gone.
type Provider struct {
	api API
	now func() time.Time // the clock
	log *slog.Logger
	ids []string // of the groups, sorted

	mu     sync.Mutex
	rand   *rand.Rand        // guarded by mu
	groups map[string]*group // by ID; never changes, what is in the groups is guarded by mu
	// orphans are the names of nodes whose instances were deleted and whose objects may be there;
	// guarded by mu.
	orphans map[string]bool
}

var _ nodegroup.Provider = (*Provider)(nil)

// group is a node group.
type group struct {
	cfg       simulatedgroup.GroupConfig
	target    int
	instances map[string]*instance // by the node's name
	nextSlot  time.Time            // when the rate limit lets the next launch through
	serial    int                  // of the last order, for names
}

// instance is one that was ordered or exists already: ordered, then registered as a
// node at launchAt, then ready at readyAt; or never registered, when its launch fails.
// A failed launch is found out at launchAt: until then nobody can tell it from the others.
type instance struct {
	launchAt, readyAt time.Time
	fails             bool
	registered, ready bool // written by Advance only; guarded by mu
}

// New returns a provider for the groups of a file, without instances: Adopt finds those
// that exist. now is the clock.
func New(api API, f *simulatedgroup.File, now func() time.Time, log *slog.Logger) *Provider {
	p := &Provider{api: api, now: now, log: log, rand: rand.New(rand.NewPCG(f.Seed, 0x62657274)), groups: map[string]*group{}, orphans: map[string]bool{}}
	for _, cfg := range f.Groups {
		p.groups[cfg.Name] = &group{cfg: cfg, instances: map[string]*instance{}}
		p.ids = append(p.ids, cfg.Name)
	}
	slices.Sort(p.ids)
	return p
}

// Adopt takes the nodes that the API has of the groups for instances: after a restart,
// before the provider is used. What was ordered and not registered is lost: the target is lower then,
// and Berth orders again what pods still need.
func (p *Provider) Adopt(ctx context.Context) error {
	list, err := p.api.List(ctx, metav1.ListOptions{LabelSelector: simulatedgroup.GroupLabel})
	if err != nil {
		return fmt.Errorf("listing nodes of simulated groups: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for i := range list.Items {
		n := &list.Items[i]
		g := p.groups[n.Labels[simulatedgroup.GroupLabel]]
		if g == nil || g.instances[n.Name] != nil {
			continue
		}
		ready := slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
			return c.Type == v1.NodeReady && c.Status != v1.ConditionFalse
		})
		g.instances[n.Name] = &instance{registered: true, ready: ready, readyAt: now.Add(g.cfg.Startup.Min.Duration)}
		g.target++
	}
	return nil
}

// Groups implements nodegroup.Provider.
func (p *Provider) Groups(context.Context) ([]nodegroup.Group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []nodegroup.Group
	for _, id := range p.ids {
		g := p.groups[id].cfg.Group()
		g.Target = p.groups[id].target
		g.Instances = []nodegroup.Instance{}
		for _, node := range slices.Sorted(maps.Keys(p.groups[id].instances)) {
			g.Instances = append(g.Instances, nodegroup.Instance{ID: simulatedgroup.ProviderID(id, node), Node: node})
		}
		out = append(out, g)
	}
	return out, nil
}

// GroupOf implements nodegroup.Provider: a node's label says which group it is of.
func (p *Provider) GroupOf(n *v1.Node) string {
	if id := n.Labels[simulatedgroup.GroupLabel]; p.groups[id] != nil {
		return id
	}
	return ""
}

// IncreaseSize implements nodegroup.Provider. When each instance launches and becomes
// ready is drawn now.
func (p *Provider) IncreaseSize(_ context.Context, id string, delta int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[id]
	if g == nil {
		return fmt.Errorf("increasing node group %q: no such group", id)
	}
	if delta <= 0 || g.target+delta > g.cfg.Max {
		return fmt.Errorf("increasing node group %q by %d: its size is %d and its maximum %d", id, delta, g.target, g.cfg.Max)
	}
	now := p.now()
	for range delta {
		at := now.Add(g.cfg.LaunchDelay.Between(p.rand.Float64()))
		if g.cfg.LaunchesPerSecond > 0 {
			if at.Before(g.nextSlot) {
				at = g.nextSlot
			}
			g.nextSlot = at.Add(simulatedgroup.Interval(g.cfg.LaunchesPerSecond))
		}
		g.serial++
		name := fmt.Sprintf("%s-%x-%04d", id, now.Unix()&0xfffff, g.serial)
		g.instances[name] = &instance{
			launchAt: at, readyAt: at.Add(g.cfg.Startup.Between(p.rand.Float64())),
			fails: p.rand.Float64() < g.cfg.FailureRate,
		}
	}
	g.target += delta
	return nil
}

// DeleteNodes implements nodegroup.Provider. Deleting a node that is gone succeeds. An instance
// has its node's name in its ID. It goes at once, and its Node object is deleted before the call
// returns, many at a time; one that can't be deleted then is deleted later (Advance). The other way round there would be an instance without a node whenever the answer to
// the deletion of the object is lost, which counts as a node that is coming.
func (p *Provider) DeleteNodes(ctx context.Context, id string, instances []nodegroup.Instance) error {
	g := p.groups[id]
	if g == nil {
		return fmt.Errorf("deleting nodes of group %q: no such group", id)
	}
	names := make([]string, len(instances))
	p.mu.Lock()
	for n, i := range instances {
		names[n] = cmp.Or(i.Node, strings.TrimPrefix(i.ID, simulatedgroup.ProviderID(id, "")))
		g.forget(names[n])
		p.orphans[names[n]] = true
	}
	p.mu.Unlock()
	p.removeNodes(ctx, names)
	return nil
}

// forget takes an instance out of the group, if it is there.
func (g *group) forget(name string) {
	if g.instances[name] != nil {
		delete(g.instances, name)
		g.target--
	}
}

// DecreaseTargetSize implements nodegroup.Provider. The target is always the number of
// instances here, so there is nothing to give up.
func (p *Provider) DecreaseTargetSize(_ context.Context, id string, delta int) error {
	return fmt.Errorf("decreasing node group %q by %d: all its instances exist", id, delta)
}

// Launching returns how many nodes of a group are ordered and not registered.
func (p *Provider) Launching(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	if g := p.groups[id]; g != nil {
		for _, i := range g.instances {
			if !i.registered {
				n++
			}
		}
	}
	return n
}
