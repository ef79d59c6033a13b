package explain

// This file says what would happen if nodes were gone, or if there were more pods. Everything is
// tried within a mark and taken back.

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/record"
)

// WithoutNodes is what would become of the pods of nodes that were removed.
type WithoutNodes struct {
	Pods  []PodHome
	Price float64 // of the nodes, an hour
}

// WithoutNodes says where the pods of nodes would go that have to leave them, if all these nodes were removed
// now; an error names a node that isn't there, or says that Berth only schedules.
func (v *View) WithoutNodes(names []string) (*WithoutNodes, error) {
	if v.Autoscaler == nil {
		return nil, fmt.Errorf("Berth only schedules here and does not remove nodes") //nolint:staticcheck // Berth is a name
	}
	out := &WithoutNodes{}
	var nodes []*cluster.Node
	for _, name := range names {
		n := v.State.NodeByName(name)
		if n == nil {
			return nil, fmt.Errorf("node %s not found", name)
		}
		nodes = append(nodes, n)
		out.Price += v.price(n.Group)
	}
	for _, d := range v.destinations(nodes...) {
		out.Pods = append(out.Pods, PodHome{Pod: d.Pod.Name(), Home: d.Node, Why: d.Why})
	}
	return out, nil
}

// MorePods is where more pods like one would go.
type MorePods struct {
	Placed int
	Nodes  map[string]int // how many pods go to each node
	Why    string         // why the next one finds no node; "" when all are placed
	// Groups has the answer of each node group for that pod; empty when all are placed, or when Berth
	// only schedules.
	Groups []GroupAnswer
}

// MorePods says where so many more pods would go that are like one, in O(pods + number × nodes of a class);
// ok is false when there is no such pod of our profiles.
func (v *View) MorePods(namespace, name string, number int) (x *MorePods, ok bool) {
	var like *cluster.Pod
	switch f := v.find(namespace, name); {
	case f.standsIn():
	case f.ours != nil:
		like = f.ours.Parsed
	default:
		like = f.placed
	}
	if like == nil || !v.Scheduler.Responsible(like) {
		return nil, false
	}
	mark := v.State.Mark()
	defer v.State.Rollback(mark)
	x = &MorePods{Nodes: map[string]int{}}
	obj := like.Object.DeepCopy()
	obj.Spec.NodeName, obj.Status = "", v1.PodStatus{}
	for i := range number {
		one := obj.DeepCopy()
		one.UID, one.Name = types.UID("what-if-"+strconv.Itoa(i)), fmt.Sprintf("%s-what-if-%d", name, i)
		p := v.State.Schema.ParsePod(one)
		e := v.Scheduler.Engine(p)
		class := e.Class(p)
		best, fits := e.Best(class)
		if !fits {
			x.Why, x.Groups = e.Diagnose(class).Message(), v.groupsFor(p)
			break
		}
		x.Placed++
		x.Nodes[v.State.Node(best.Node).Name]++
		v.State.PlaceAt(p, best.Node)
	}
	return x, true
}

// groupsFor returns the answer of each node group for a hypothetical pod: Limited, Rejects or WouldTake. It is empty until the provider has listed the groups.
func (v *View) groupsFor(p *cluster.Pod) []GroupAnswer {
	if v.Autoscaler == nil || !v.Autoscaler.Groups.Known() {
		return nil
	}
	req := v.Autoscaler.Plans.Request()
	req.Pending = append(req.Pending, p)
	answer, x := v.packer().Explain(*req, p), &Scaling{}
	v.explainGroups(&record.Description{Parsed: p}, &answer, x)
	return x.Groups
}
