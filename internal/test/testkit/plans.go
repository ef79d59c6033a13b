package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
)

// PlanCase is a scale-up from nothing: pods that all wait at once, and node groups without nodes. A
// node has 8 CPUs and 32 GiB. Pods may be changed: what a case is about holds for any number.
type PlanCase struct {
	Name   string
	Groups int
	Zones  int // that the groups are in
	Pods   int
	pod    func(i int) *PodBuilder
}

// whole is a pod that fills a node.
func whole(int) *PodBuilder { return replicaOf(0).Req("cpu", "7", "memory", "28Gi") }

// replicaOf returns a pod of a ReplicaSet.
func replicaOf(app int) *PodBuilder {
	name := fmt.Sprint("a", app)
	return Pod("").Label("app", name).Owner("apps/v1", "ReplicaSet", name)
}

// PublishedPlanCases returns the cases of which times of Cluster Autoscaler are published.
func PublishedPlanCases() []PlanCase {
	return []PlanCase{
		{"plain, 1 per node", 2, 1, 22000, whole},
		{"plain, 8 per node", 2, 1, 22000, func(int) *PodBuilder { return replicaOf(0).Req("cpu", "1", "memory", "4Gi") }},
		{"node affinity, 1 per node", 2, 1, 18000, func(i int) *PodBuilder { return whole(i).RequireIn("pool", "batch") }},
	}
}

// PlanCases returns all cases, the published ones first.
func PlanCases() []PlanCase {
	return append(PublishedPlanCases(), []PlanCase{
		{"own labels each, no owner", 2, 1, 22000, func(i int) *PodBuilder {
			return Pod(fmt.Sprint("p", i)).Label("index", fmt.Sprint(i)).Req("cpu", "7", "memory", "28Gi")
		}},
		{"hostname anti-affinity", 2, 1, 22000, func(int) *PodBuilder {
			return replicaOf(0).Req("cpu", "1", "memory", "1Gi").Apart(v1.LabelHostname, "app", "a0")
		}},
		{"hard zone spread, 3 zones", 3, 3, 22000, func(int) *PodBuilder {
			return replicaOf(0).Req("cpu", "1", "memory", "4Gi").SpreadHard(v1.LabelTopologyZone, 1, "app", "a0")
		}},
		{"500 shapes", 2, 1, 22000, func(i int) *PodBuilder {
			k := i % 500
			return replicaOf(k).Req("cpu", fmt.Sprintf("%dm", 100+k*10), "memory", fmt.Sprintf("%dMi", 200+(k*37)%9000))
		}},
	}...)
}

// Pending returns the pods.
func (c PlanCase) Pending(schema *cluster.Schema) (out []*cluster.Pod) {
	for i := range c.Pods {
		of := c.pod(i)
		p := Pod(fmt.Sprint("p", i))
		p.Labels, p.OwnerReferences, p.Spec = of.Labels, of.OwnerReferences, of.Spec
		out = append(out, schema.ParsePod(p.Obj()))
	}
	return out
}

// Cluster returns a cluster with the groups and nothing else.
func (c PlanCase) Cluster(schema *cluster.Schema) *cluster.State {
	primary := cluster.New(schema)
	for g := range c.Groups {
		t := Node(fmt.Sprint("ng-", g)).Alloc("cpu", "8", "memory", "32Gi", "pods", "110").Zone(fmt.Sprint("z", g%c.Zones))
		t.Labels["pool"] = "batch"
		primary.SetGroup(t.Name, &cluster.NodeGroup{ID: t.Name, Max: 30000, Template: schema.ParseNode(t.Obj(), t.Name)})
	}
	return primary
}
