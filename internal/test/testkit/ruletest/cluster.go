package ruletest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has the cluster of a case: a state that takes what testkit builds.

// Make makes the plugin under test. Its argument is the schema of the cluster
// that the plugin will see.
type Make func(*cluster.Schema) framework.Plugin

// Is returns the Make of a plugin that needs no schema.
func Is(p framework.Plugin) Make { return func(*cluster.Schema) framework.Plugin { return p } }

// Objects lists API objects in a table.
type Objects = []runtime.Object

// Nodes lists nodes in a table.
type Nodes = []*testkit.NodeBuilder

// Pods lists pods in a table: placed where spec.nodeName says, or nominated to
// status.nominatedNodeName.
type Pods = []*testkit.PodBuilder

// Times returns n pods like p; Place gives each a name of its own.
func Times(n int, p *testkit.PodBuilder) Pods {
	out := make(Pods, n)
	for i := range out {
		out[i] = p
	}
	return out
}

// Cluster is a state with methods that take what testkit builds.
type Cluster struct {
	*cluster.State
	t     testing.TB
	names map[string]int // pods placed so far, by the name in the table
}

// NewCluster returns a state of the newest version with the nodes, objects and pods.
func NewCluster(t testing.TB, nodes Nodes, objects Objects, pods Pods) *Cluster {
	t.Helper()
	return NewClusterFor(t, compat.Newest, nodes, objects, pods)
}

// NewClusterFor returns a state of a version, 0 for the newest, with the nodes, objects and pods.
func NewClusterFor(t testing.TB, v compat.Version, nodes Nodes, objects Objects, pods Pods) *Cluster {
	t.Helper()
	schema := cluster.NewSchema()
	if v != 0 {
		schema = cluster.SchemaFor(v)
	}
	c := &Cluster{State: cluster.New(schema), t: t, names: map[string]int{}}
	for _, n := range nodes {
		c.Node(n)
	}
	for _, o := range objects {
		c.Set(o)
	}
	for _, p := range pods {
		c.Place(p)
	}
	return c
}

// Node adds a node, or replaces the one of that name.
func (c *Cluster) Node(n *testkit.NodeBuilder) { c.SetNode(c.Schema.ParseNode(n.Obj(), "")) }

// Set adds an object that rules read (a claim, a namespace, a Service, …), or
// replaces it.
func (c *Cluster) Set(o runtime.Object) {
	c.t.Helper()
	if w := cluster.WorkloadOf(o); w != nil {
		c.SetWorkload(w)
		return
	}
	object, ok := o.(cluster.Object)
	if !ok || cluster.KindOf(object) == cluster.NoObject {
		c.t.Fatalf("no rule reads a %T", o)
	}
	c.SetObject(object)
}

// Place puts a pod on the node of its spec.nodeName, or nominates it to its nominated node.
// A second pod with the same name gets the suffix -2, and so on.
func (c *Cluster) Place(b *testkit.PodBuilder) {
	c.t.Helper()
	p := b.DeepCopy()
	key := p.Namespace + "/" + p.Name
	if n := c.names[key]; n > 0 {
		p.Name = fmt.Sprint(p.Name, "-", n+1)
		p.UID = types.UID("pod-" + p.Name)
	}
	c.names[key]++
	switch node, nominated := p.Spec.NodeName, p.Status.NominatedNodeName; {
	case node != "":
		c.State.Place(c.Schema.ParsePod(p), node)
	case nominated != "":
		c.Nominate(c.Schema.ParsePod(p), nominated)
	default:
		c.t.Fatalf("pod %s is neither on a node nor nominated to one", p.Name)
	}
}

// Delete removes the placed pod with that name.
func (c *Cluster) Delete(name string) {
	c.t.Helper()
	if !c.Remove(types.UID("pod-" + name)) {
		c.t.Fatalf("there is no placed pod %s", name)
	}
}

// Parse reads a pod that isn't placed: the one that rules are made for.
func (c *Cluster) Parse(b *testkit.PodBuilder) *cluster.Pod { return c.Schema.ParsePod(b.DeepCopy()) }

// Changes calls do and returns the changes that the journal has of it, at least one.
func (c *Cluster) Changes(do func(*Cluster)) []cluster.Change {
	c.t.Helper()
	from := c.Head()
	do(c)
	changes, ok := c.Since(from)
	if !ok || len(changes) == 0 {
		c.t.Fatal("the case changes nothing in the cluster")
	}
	return append([]cluster.Change(nil), changes...)
}

// PodNominated returns the nominated pod of that name.
func (c *Cluster) PodNominated(name string) *cluster.Pod {
	c.t.Helper()
	for _, n := range c.Nominations() {
		if n.Pod.Object.Name == name {
			return n.Pod
		}
	}
	c.t.Fatalf("no pod %s is nominated", name)
	return nil
}
