package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
)

// This file has a cluster of nodes that are used by two fifths, for benchmarks of scale-down.

// PartFull says what such a cluster is like: so many nodes, so many pods on each, of so many
// ReplicaSets, whose pods are of so many shapes.
type PartFull struct{ Nodes, PerNode, Owners, Shapes int }

// State returns the cluster. Each ReplicaSet has a disruption budget that allows all of its pods
// to go.
func (c PartFull) State() *cluster.State {
	s := cluster.New(cluster.NewSchema())
	pods := c.PerNode * c.Nodes
	s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: c.Nodes, Max: c.Nodes, Template: s.Schema.ParseNode(PartFullNode("t").Obj(), "g")})
	for i := range c.Nodes {
		s.SetNode(s.Schema.ParseNode(PartFullNode(c.NodeName(i)).Zone(string(rune('a'+i%3))).Obj(), "g"))
	}
	for i := range c.Owners {
		each := int32(pods / c.Owners)
		s.SetWorkload(&cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: app(i), Selector: labels.SelectorFromSet(labels.Set{"app": app(i)}), Replicas: cluster.Replicas{Wanted: each, Existing: each}})
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app(i)}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app(i)}}}}
		b.Status.DisruptionsAllowed = int32(pods)
		s.SetObject(b)
	}
	for i := range pods {
		p := s.Schema.ParsePod(c.Pod(i))
		s.Place(p, c.NodeName(i%c.Nodes))
		s.SetReady(p.UID, true)
	}
	return s
}

// PartFullNode returns a node of such a cluster.
func PartFullNode(name string) *NodeBuilder {
	return Node(name).Alloc("cpu", "16", "memory", "64Gi", "pods", "110")
}

// NodeName returns the name of a node.
func (c PartFull) NodeName(i int) string { return fmt.Sprintf("n%05d", i) }

// Pod returns a pod of one of the owners. The pods of each owner are a class of their own, by their
// priority. Pods of several shapes differ in what they request by up to half as many milli-CPU more
// or less than the mean.
func (c PartFull) Pod(i int) *v1.Pod {
	owner := (i * 7919) % c.Owners
	cpu := 6400/c.PerNode - c.Shapes/2 + owner%c.Shapes
	return Pod(fmt.Sprintf("p%d", i)).Owner("apps/v1", "ReplicaSet", app(owner)).Label("app", app(owner)).
		Req("cpu", fmt.Sprintf("%dm", cpu), "memory", fmt.Sprintf("%dMi", 4*cpu)).Priority(int32(owner)).On(c.NodeName(i % c.Nodes)).Obj()
}
