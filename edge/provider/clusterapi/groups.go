package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// This file makes the groups of what the caches have. What must hold: what is wrong with one object
// concerns its group only; a Machine is in the group of the object that controls it, by owner
// references, and an instance is in one group at most.

// Groups implements nodegroup.Provider. What it has read becomes what GroupOf and the changes of sizes
// go by. Its error means that the groups of before hold; what is wrong with one object is in its group.
// It waits for the caches, up to a bound (sync).
func (p *Provider) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	if err := p.sync(ctx); err != nil {
		return nil, err
	}
	all := p.read()
	out := make([]nodegroup.Group, len(all))
	known := newMembership()
	// By instance, so that each is warned of once.
	twice := map[string]string{}
	for i, g := range all {
		p.warn(g.ID, g.remark)
		known.add(g, twice)
		out[i] = g.Group
	}
	for about := range p.said { // what no object has any more
		if known.groups[about] == nil && twice[about] == "" {
			delete(p.said, about)
		}
	}
	for about, why := range twice {
		p.warn(about, why)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
	return out, nil
}

// group is a node group with the object that it is.
// It is made anew by each reading.
type group struct {
	nodegroup.Group
	resource string
	object   *scalable
	machines []*machine // that it controls, by name
	remark   string     // what is to be said of it beside what the group says itself
}

// idOf returns the ID of a group, as Cluster Autoscaler has it.
func idOf(kind string, o *scalable) string { return kind + "/" + o.Namespace + "/" + o.Name }

// read returns the groups by ID, as the caches have them now. It may see a Machine without its owner or
// the other way round: the caches of two kinds aren't of one instant. The next reading sees both.
func (p *Provider) read() []*group {
	var out []*group
	byID := map[string]*group{}
	// A MachineDeployment's Machines are controlled by its MachineSets.
	sets := map[string][]*scalable{} // of a MachineDeployment, by its group
	deployed := map[string]string{}  // the group of a MachineSet that a MachineDeployment owns, by that of the MachineSet itself
	for _, resource := range []string{machineDeployments, machineSets, machinePools} {
		for _, o := range objectsOf[*scalable](&p.watching, resource) {
			id := idOf(kindOf[resource], o)
			if name := owner(&o.ObjectMeta, machineDeployment); name != "" && resource == machineSets {
				deployed[id] = machineDeployment + "/" + o.Namespace + "/" + name
				sets[deployed[id]] = append(sets[deployed[id]], o)
				// A MachineSet that a deployment owns is no group by itself.
				continue
			}
			if g := p.newGroup(id, resource, o); g != nil {
				out = append(out, g)
				byID[id] = g
			}
		}
	}
	for _, m := range objectsOf[*machine](&p.watching, machines) {
		id := ""
		if set := owner(&m.ObjectMeta, machineSet); set != "" {
			id = machineSet + "/" + m.Namespace + "/" + set
			// Where the set belongs to a deployment, so do its Machines.
			id = cmp.Or(deployed[id], id)
		} else if pool := owner(&m.ObjectMeta, machinePool); pool != "" {
			id = machinePool + "/" + m.Namespace + "/" + pool
		}
		if g := byID[id]; g != nil {
			g.machines = append(g.machines, m)
		}
	}
	slices.SortFunc(out, func(a, b *group) int { return strings.Compare(a.ID, b.ID) })
	for _, g := range out {
		// The order of caches isn't fixed.
		slices.SortFunc(g.machines, func(a, b *machine) int { return strings.Compare(a.Name, b.Name) })
		g.KeepNodes = rollout(sets[g.ID])
		p.fill(g)
	}
	return out
}

// newGroup returns the group of an object, nil when it is none: it has no maximum, isn't selected,
// or its reconciliation is paused.
// A group that can't be read stays listed as such, so that it doesn't seem to be gone.
func (p *Provider) newGroup(id, resource string, o *scalable) *group {
	if _, paused := o.Annotations[p.keys.paused]; paused || !selected(p.cfg.Discovery, o) {
		return nil
	}
	lowest, highest, err := p.keys.limits(o.Annotations)
	if err == nil && highest == 0 {
		return nil
	}
	g := &group{Group: nodegroup.Group{ID: id, Min: lowest, Max: highest}, resource: resource, object: o}
	switch {
	case err != nil:
		g.Unreadable = err.Error()
	case o.unreadable != "":
		g.Unreadable = o.unreadable
	case o.Spec.Replicas == nil:
		g.Unreadable = "spec.replicas is missing; it must be the number of nodes"
	case *o.Spec.Replicas < 0:
		g.Unreadable = fmt.Sprintf("spec.replicas is %d; it must not be negative", *o.Spec.Replicas)
	default:
		g.Target = int(*o.Spec.Replicas)
	}
	return g
}

// fill adds template, options and instances to a group that has its object and its Machines.
//
// Machines that Cluster API deletes are no instances: they don't count for the target, which was lowered
// with them. Instances are nil for a MachinePool that wants nodes and lists none, which means that it
// doesn't tell of them; an empty list means that there are none.
func (p *Provider) fill(g *group) {
	if g.Unreadable != "" {
		return
	}
	g.Options, g.remark = p.keys.groupOptions(g.object.Annotations)
	var wrong string
	g.Price, wrong = price(g.object.Annotations)
	g.remark = joinRemarks(g.remark, wrong)
	n, err := template(g.object, p.cfg.Arch)
	if g.Template = n; err != nil {
		g.TemplateError = err.Error()
	} else {
		g.Devices = devices(g.object)
	}
	leaving := g.leaving(p.keys.deleteMachine)
	listed := map[string]bool{}
	for _, m := range g.machines {
		if !listed[m.id()] && !leaving[m] {
			g.Instances = append(g.Instances, m.instance())
		}
		listed[m.id()] = true
	}
	// A pool may list instances that have no Machine.
	for _, id := range g.object.Spec.ProviderIDList {
		if id != "" && !listed[id] {
			listed[id] = true
			g.Instances = append(g.Instances, nodegroup.Instance{ID: id})
		}
	}
	if g.Instances == nil && (g.resource != machinePools || len(listed) > 0 || g.Target == 0) {
		g.Instances = []nodegroup.Instance{}
	}
	// Raising the minimum is what keeps scale-down away from it.
	if g.resource == machinePools && len(g.machines) == 0 && g.Target > g.Min {
		g.Min = min(g.Target, g.Max)
		g.remark = joinRemarks(g.remark, "it has no Machines, so a node to delete can't be selected: Berth does not scale it down")
	}
}

// joinRemarks returns two remarks as one; either may be "".
func joinRemarks(a, b string) string { return strings.Trim(a+"; "+b, "; ") }

// leaving returns the Machines that Cluster API deletes: those that are being deleted, and of those
// that are marked as many as there are more Machines than the object wants. It deletes marked ones
// before all others. A mark without such excess counts for
// nothing: the size wasn't lowered, or isn't yet.
func (g *group) leaving(deleteMachine string) map[*machine]bool {
	out := map[*machine]bool{}
	for _, m := range g.machines {
		if m.DeletionTimestamp != nil {
			out[m] = true
		}
	}
	excess := len(g.machines) - len(out) - g.Target
	for _, m := range g.machines {
		if _, marked := m.Annotations[deleteMachine]; marked && !out[m] && excess > 0 {
			out[m] = true
			excess--
		}
	}
	return out
}

// membership maps nodes to groups, and instances to Machines. It isn't changed after
// Groups has made it known.
// Reading it needs no lock, therefore.
type membership struct {
	groups map[string]*group // by ID
	byID   map[string]*group // by the provider ID, or the key of the Machine
	// byNode has the groups of nodes by their names, as far as Cluster API knows them.
	byNode map[string]nodeOf
}

// nodeOf is a node as Cluster API knows it.
type nodeOf struct {
	group *group
	id    string // the provider ID, "" when Cluster API has none
}

func newMembership() membership {
	return membership{groups: map[string]*group{}, byID: map[string]*group{}, byNode: map[string]nodeOf{}}
}

// add adds a group. An instance that a group before it has is taken off it, and noted in twice
// under the instance's ID.
// Groups are added in the order of their IDs.
func (k *membership) add(g *group, twice map[string]string) {
	k.groups[g.ID] = g
	claim := func(id string) bool {
		if first := k.byID[id]; first != nil && first != g {
			twice[id] = fmt.Sprintf("groups %s and %s both have this instance; it is counted in the first by name", first.ID, g.ID)
			return false
		}
		k.byID[id] = g
		return true
	}
	// Instances that another group has been given.
	lost := map[string]bool{}
	for _, m := range g.machines {
		if !claim(m.id()) {
			lost[m.id()] = true
			continue
		}
		k.byID[m.key()] = g
		k.addNode(m.Status.NodeRef.Name, nodeOf{g, m.Spec.ProviderID})
	}
	for _, id := range g.object.Spec.ProviderIDList {
		if id != "" && !claim(id) {
			lost[id] = true
		}
	}
	// Pools name their nodes without IDs.
	for _, ref := range g.object.Status.NodeRefs {
		k.addNode(ref.Name, nodeOf{group: g})
	}
	if len(lost) > 0 {
		g.Instances = slices.DeleteFunc(g.Instances, func(in nodegroup.Instance) bool { return lost[in.ID] })
	}
}

// addNode records the group of a node's name; the first group keeps it.
func (k *membership) addNode(name string, n nodeOf) {
	if _, ok := k.byNode[name]; !ok && name != "" {
		k.byNode[name] = n
	}
}

// groupOf returns the ID of a node's group: by its provider ID, and by its name when the node or
// its Machine has no provider ID. Nodes of several clusters may have one name.
func (k *membership) groupOf(n *v1.Node) string {
	if g := k.byID[n.Spec.ProviderID]; g != nil && n.Spec.ProviderID != "" {
		return g.ID
	}
	if x := k.byNode[n.Name]; x.group != nil && (x.id == "" || n.Spec.ProviderID == "") {
		return x.group.ID
	}
	return ""
}
