// Package simulated is a node group provider without a cloud: asking for nodes
// creates real Node objects after a delay, which become ready after another;
// removing a node deletes its object. Launches can be slow, limited in rate,
// and fail. What runs on the nodes is somebody else's business: the dev
// cluster's simulated kubelets, for one.
package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// API is what the provider needs of the Kubernetes API.
type API interface {
	List(ctx context.Context, opts metav1.ListOptions) (*v1.NodeList, error)
	Create(ctx context.Context, node *v1.Node, opts metav1.CreateOptions) (*v1.Node, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*v1.Node, error)
}

// Provider implements nodegroup.Provider.
type Provider struct {
	api   API
	now   func() time.Time
	mu    sync.Mutex
	rand  *rand.Rand
	group map[string]*group
	names []string
	// Log is told what happens; nil for silence.
	Log func(msg string, args ...any)
}

var _ nodegroup.Provider = (*Provider)(nil)

type group struct {
	cfg       simulatedgroup.GroupConfig
	target    int
	instances map[string]*instance // by node name; those ordered or known to exist
	nextSlot  time.Time            // when the rate limit lets the next launch through
	serial    int
}

// instance is a machine: ordered, then registered, then ready.
type instance struct {
	launchAt, readyAt time.Time
	fails             bool
	registered, ready bool
}

// New returns a provider for the groups of a file. Nodes that exist already
// are found when it first looks. now is the clock.
func New(api API, f *simulatedgroup.File, now func() time.Time) *Provider {
	p := &Provider{api: api, now: now, rand: rand.New(rand.NewPCG(f.Seed, 0x62657274)), group: map[string]*group{}}
	for _, cfg := range f.Groups {
		p.group[cfg.Name] = &group{cfg: cfg, instances: map[string]*instance{}}
		p.names = append(p.names, cfg.Name)
	}
	slices.Sort(p.names)
	return p
}

func (p *Provider) log(msg string, args ...any) {
	if p.Log != nil {
		p.Log(msg, args...)
	}
}

// Adopt takes the nodes that exist in the API for instances: after a restart.
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
		g := p.group[n.Labels[simulatedgroup.GroupLabel]]
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
	for _, name := range p.names {
		g := p.group[name].cfg.Group()
		g.Target = p.group[name].target
		g.Instances = []nodegroup.Instance{}
		for _, node := range slices.Sorted(maps.Keys(p.group[name].instances)) {
			g.Instances = append(g.Instances, nodegroup.Instance{ID: simulatedgroup.ProviderID(name, node), Node: node})
		}
		out = append(out, g)
	}
	return out, nil
}

// GroupOf implements nodegroup.Provider.
func (p *Provider) GroupOf(n *v1.Node) string {
	if id := n.Labels[simulatedgroup.GroupLabel]; p.group[id] != nil {
		return id
	}
	return ""
}

// IncreaseSize implements nodegroup.Provider.
func (p *Provider) IncreaseSize(_ context.Context, id string, delta int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.group[id]
	if g == nil {
		return fmt.Errorf("increasing node group %q: there is no such group", id)
	}
	if delta <= 0 || g.target+delta > g.cfg.Max {
		return fmt.Errorf("increasing node group %q by %d: its size is %d and its max %d", id, delta, g.target, g.cfg.Max)
	}
	now := p.now()
	for range delta {
		at := now.Add(g.cfg.LaunchDelay.Between(p.rand.Float64()))
		if g.cfg.LaunchesPerSecond > 0 {
			if at.Before(g.nextSlot) {
				at = g.nextSlot
			}
			g.nextSlot = at.Add(time.Duration(float64(time.Second) / g.cfg.LaunchesPerSecond))
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

// DeleteNodes implements nodegroup.Provider.
func (p *Provider) DeleteNodes(ctx context.Context, id string, instances []nodegroup.Instance) error {
	p.mu.Lock()
	g := p.group[id]
	p.mu.Unlock()
	if g == nil {
		return fmt.Errorf("deleting nodes of group %q: there is no such group", id)
	}
	for _, i := range instances {
		name := i.Node
		if err := p.api.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting node %s: %w", name, err)
		}
		p.mu.Lock()
		if g.instances[name] != nil {
			delete(g.instances, name)
			g.target--
		}
		p.mu.Unlock()
	}
	return nil
}

// DecreaseTargetSize implements nodegroup.Provider. The target is always the
// number of instances here, so there is nothing to give up.
func (p *Provider) DecreaseTargetSize(_ context.Context, id string, delta int) error {
	return fmt.Errorf("decreasing node group %q by %d: all its machines exist", id, delta)
}

// Launching returns how many nodes of a group are ordered but not registered.
func (p *Provider) Launching(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	if g := p.group[id]; g != nil {
		for _, i := range g.instances {
			if !i.registered {
				n++
			}
		}
	}
	return n
}

// Run does what is due, every period, until the context ends.
func (p *Provider) Run(ctx context.Context, period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.Work(ctx)
		}
	}
}

// Work registers the nodes whose launch is due and makes those ready whose
// start is over. What fails is tried again by the next call.
func (p *Provider) Work(ctx context.Context) {
	type job struct {
		g    *group
		name string
		i    *instance
	}
	var due []job
	p.mu.Lock()
	now := p.now()
	for _, id := range p.names {
		g := p.group[id]
		for name, i := range g.instances {
			switch {
			case !i.registered && !now.Before(i.launchAt) && i.fails:
				delete(g.instances, name)
				g.target--
				p.log("a simulated launch failed", "group", id, "node", name)
			case !i.registered && !now.Before(i.launchAt), i.registered && !i.ready && !now.Before(i.readyAt):
				due = append(due, job{g, name, i})
			}
		}
	}
	p.mu.Unlock()
	slices.SortFunc(due, func(a, b job) int { return strings.Compare(a.name, b.name) })
	for _, j := range due {
		var err error
		if !j.i.registered {
			err = p.register(ctx, j.g, j.name)
		} else {
			err = p.makeReady(ctx, j.name)
		}
		p.mu.Lock()
		switch {
		case err != nil && apierrors.IsNotFound(err): // somebody deleted it
			if j.g.instances[j.name] != nil {
				delete(j.g.instances, j.name)
				j.g.target--
			}
		case err != nil:
			p.log("a simulated node could not be updated; trying again", "node", j.name, "err", err)
		case !j.i.registered:
			j.i.registered = true
		default:
			j.i.ready = true
		}
		p.mu.Unlock()
	}
}

func (p *Provider) register(ctx context.Context, g *group, name string) error {
	_, err := p.api.Create(ctx, g.cfg.NewNode(name), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (p *Provider) makeReady(ctx context.Context, name string) error {
	now := metav1.NewTime(p.now())
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated node is ready",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	_, err = p.api.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
