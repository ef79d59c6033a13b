package scaleup

import (
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// Virtual nodes: what new nodes of a group will look like. They are made after the newest
// usable node of the group, as it is without what is true of it alone, with its static
// pods, the limits of its CSI drivers and its devices; where a group has had no such node, after the
// provider's template. They have the storage that the cluster says template nodes have. Daemon
// pods are added where the scheduler would have them.

// model is what new nodes of a group are made after.
type model struct {
	group  *cluster.NodeGroup
	number int // of those of a plan, by the group's ID; from 0
	slot   int // of what is remembered about it (memory.go)
	key    modelKey
	info   *cluster.NodeInfo
	// live is the node that info was taken from; nil when that is gone, or info is the
	// provider's template.
	live *cluster.Node
	// blank is a new node with the pods that it gets by itself, outside of the state. It
	// is made when it is first needed.
	blank *cluster.Node
	// fits is how many pods of a countable class that isn't plain blank takes, once asked.
	fits map[*engine.Class]int
	// similar are the groups that share what is bought of this one, once compared.
	similar  []*model
	compared bool
	drivers  *storagev1.CSINode // see builder.csiNode; made when it is first needed
}

// newModels returns the model of each group: those of the plan before that are the same still, with
// what they remember.
func (b *builder) newModels() map[string]*model {
	out := map[string]*model{}
	for i, g := range b.State.Groups() {
		key := b.keyOf(g)
		m := b.memory.models[g.ID]
		if m == nil || !m.key.equal(&key) {
			m = b.newModel(g, key)
		}
		m.group, m.number, m.live = g, i, b.liveOf(g)
		m.fits, m.similar, m.compared = nil, nil, false
		b.addDrivers(m, blankNode(g)) // rules look for them there
		b.addDevices(m, blankNode(g))
		out[g.ID] = m
	}
	b.memory.keepModels(out)
	return out
}

// liveOf returns the newest usable node of a group; nil when it is gone, or there was none.
func (b *builder) liveOf(g *cluster.NodeGroup) *cluster.Node {
	if newest := b.req.Conditions[g.ID].Newest; newest != nil {
		return b.State.NodeByName(newest.Name)
	}
	return nil
}

// keyOf returns what a group's model is to be made of. As long as no node of a group has been
// usable, one that is starting may show less than the provider's template promises: nodes of
// the template would be bought for pods that none of them takes, until the first is usable.
func (b *builder) keyOf(g *cluster.NodeGroup) modelKey {
	k := modelKey{template: g.Template, newest: b.req.Conditions[g.ID].Newest, promised: b.promises.drivers[g.ID], devices: b.promises.devices[g.ID]}
	if k.newest == nil {
		if c := b.coming[g.ID]; c != nil {
			for _, n := range c.Starting {
				k.starting = autoscaler.Newer(k.starting, n.NodeInfo)
			}
		}
		return k
	}
	if live := b.liveOf(g); live != nil {
		k.csi = b.State.CSINode(live.Name)
		for _, pod := range live.Pods {
			if pod.Mirror() {
				k.mirrors = append(k.mirrors, pod)
			}
		}
	}
	return k
}

func (b *builder) newModel(g *cluster.NodeGroup, key modelKey) *model {
	m := &model{key: key, info: key.template}
	switch {
	case key.newest != nil:
		m.info = b.req.Readiness.TemplateFrom(key.newest, key.template)
	case key.starting != nil:
		m.info = autoscaler.Lowered(key.template, key.starting)
	}
	m.info = asTemplate(m.info)
	return m
}

// addNode adds a new node to the state, with the pods that it gets by itself.
func (b *builder) addNode(m *model, name string) cluster.NodeIndex {
	b.work.Nodes++
	i := b.State.SetNode(m.info.Renamed(name))
	b.addDrivers(m, name)
	b.addDevices(m, name)
	for _, pod := range m.key.mirrors {
		b.State.PlaceAt(pod.Instance(fmt.Sprintf("%s on %s", pod.Name(), name)), i)
	}
	b.addDaemons(i)
	return i
}

// TemplateNodeLabel marks nodes that aren't there yet, in the planner's state only. It is
// Cluster Autoscaler's: a CSIStorageCapacity whose topology selects it says how much storage
// of their own new nodes will have.
const TemplateNodeLabel = "cluster-autoscaler.kubernetes.io/template-node"

// asTemplate returns a node with TemplateNodeLabel.
func asTemplate(info *cluster.NodeInfo) *cluster.NodeInfo {
	object := *info.Object
	object.Labels = maps.Clone(object.Labels)
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[TemplateNodeLabel] = "true"
	return info.With(&object)
}

// addDaemons adds the pods of the DaemonSets that a node has none of and would get.
func (b *builder) addDaemons(i cluster.NodeIndex) {
	n := b.State.Node(i)
	for _, w := range b.daemons {
		if slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool { return p.OwnedBy(w) }) {
			continue
		}
		if e := b.Engine(w.Template); e.Explain(e.Class(w.Template), i) == nil {
			b.State.PlaceAt(w.Template.Instance(fmt.Sprintf("%s/%s on %s", w.Namespace, w.Name, n.Name)), i)
		}
	}
}

// blank returns a new node of a group outside of the state.
func (b *builder) blank(m *model) *cluster.Node {
	if m.blank == nil {
		mark := b.State.Mark()
		m.blank = b.State.Node(b.addNode(m, blankNode(m.group))).Detached()
		b.State.Rollback(mark)
	}
	return m.blank
}

// fits returns how many pods of a countable class a new node of a group takes.
func (b *builder) fits(m *model, e *engine.Engine, c *engine.Class) int {
	if b.plain(e, c) {
		a := b.memory.answersFor(c)
		if a.fits[m.slot] == 0 {
			b.work.Asked++
			a.fits[m.slot] = int32(min(e.Count(c, b.blank(m)), math.MaxInt32-1)) + 1
		}
		return int(a.fits[m.slot]) - 1
	}
	n, known := m.fits[c]
	if !known {
		if m.fits == nil {
			m.fits = map[*engine.Class]int{}
		}
		b.work.Asked++
		n = e.Count(c, b.blank(m))
		m.fits[c] = n
	}
	return n
}

// addDomains has the zones and regions of groups that may grow be known in the state, also
// where no node is in them yet: pods with hard spreading are to be bought nodes in all of
// them. For each group there is a node that takes no pods, and is no host: among hosts one
// without pods would keep the others from having more than the skew allows. It returns the
// names of these nodes. They have to go before pods are left without a node: where no node
// is bought in a zone, the scheduler won't know of it.
func (b *builder) addDomains() (names []string) {
	for _, g := range b.State.Groups() {
		if room, _ := b.headroom(g); room <= 0 {
			continue
		}
		info := b.models[g.ID].info.Renamed(g.ID + "/domain")
		info.AllowedPods = 0
		delete(info.Object.Labels, v1.LabelHostname)
		b.State.SetNode(info)
		names = append(names, info.Name)
	}
	return names
}

func blankNode(g *cluster.NodeGroup) string { return g.ID + "/blank" }

// Names of virtual nodes. Ties between nodes go by their names, so other names make
// other plans.
func newNode(g *cluster.NodeGroup, i int) string    { return fmt.Sprintf("%s/new-%d", g.ID, i) }
func comingNode(g *cluster.NodeGroup, i int) string { return fmt.Sprintf("%s/upcoming-%d", g.ID, i) }
