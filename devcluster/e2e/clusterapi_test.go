package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/berthproject/berth/devcluster/capi"
)

// groupLabel is a label that Cluster API gives the nodes of Machines that have it.
const groupLabel = clusterv1.ManagedNodeLabelDomain + "/group"

// played is a cluster on which Cluster API is played, with Berth.
type played struct {
	t       *testing.T
	client  kubernetes.Interface
	objects dynamic.Interface
	*capi.Controller
	log string // path of Berth's
}

// TestClusterAPI grows a MachineDeployment, a MachineSet and two MachinePools from no nodes, by
// what their annotations say; and removes of those that have Machines just the node that is
// unneeded. A Machine that fails is given up, and another is ordered when its group has backed off.
func TestClusterAPI(t *testing.T) {
	t.Parallel()
	p := playClusterAPI(t)
	for _, name := range []string{"w1", "w2"} {
		p.pod(name, "workers")
	}
	p.pod("s1", "set")
	p.pod("p1", "pool")
	p.pod("o1", "own")
	for _, name := range []string{"w1", "w2", "s1", "p1", "o1"} {
		p.runs(name)
	}
	if got, want := p.sizes(), "workers 2, set 1, pool 1, own 1, broken 0"; got != want {
		t.Errorf("the sizes are %s, want %s", got, want)
	}
	p.logged("Deployment/default/broken", "cluster-api-autoscaler-node-group-min-size is \\\"many\\\"")

	// Of two nodes the one goes that nobody needs, though it is the older and Cluster API would
	// take another.
	gone, kept := p.node("w1"), p.node("w2")
	for _, name := range []string{"w1", "s1", "p1", "o1"} {
		if err := p.client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the unneeded nodes to go", func(context.Context) bool { return p.sizes() == "workers 1, set 0, pool 1, own 0, broken 0" })
	eventually(t, "their Machines to go", func(context.Context) bool { return p.machines() == kept })
	if nodes := p.nodes(); !slices.Equal(nodes, []string{kept, "pool-0"}) {
		t.Errorf("the nodes are %v, want %s and pool-0; %s was unneeded", nodes, kept, gone)
	}

	// The first Machine of the next order fails, for want of stock.
	p.Fail("workers-1", capi.Failure{Reason: "InsufficientResources", Message: "no more of these", Machines: 1})
	p.pod("w3", "workers")
	p.happened("ScaleUpFailed", "Failed adding 1 nodes to group MachineDeployment/default/workers due to InsufficientResources; source errors: InsufficientResources: no more of these")
	p.runs("w3")
	if got, want := p.sizes(), "workers 2, set 0, pool 1, own 0, broken 0"; got != want {
		t.Errorf("the sizes are %s, want %s", got, want)
	}
	if n := strings.Count(p.machines(), " ") + 1; n != 2 {
		t.Errorf("there are the Machines %s, want two", p.machines())
	}
}

// playClusterAPI starts a cluster on which Cluster API is played, with groups of no nodes, and
// Berth.
func playClusterAPI(t *testing.T) *played {
	c, client := startCluster(t)
	objects, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := capi.Define(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, client: client, objects: objects, Controller: &capi.Controller{Client: client, Objects: objects, Allocatable: list("cpu", "4", "memory", "16Gi", "pods", "110"), Log: t.Logf}}
	workers, set, pool, own, broken := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.MachinePool{}, &clusterv1.MachinePool{}, &clusterv1.MachineDeployment{}
	for name, o := range map[string]metav1.Object{"workers": workers, "set": set, "pool": pool, "own": own, "broken": broken} {
		o.SetName(name)
		o.SetAnnotations(map[string]string{
			"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "0", "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "3",
			"capacity.cluster-autoscaler.kubernetes.io/cpu": "4", "capacity.cluster-autoscaler.kubernetes.io/memory": "16Gi",
		})
	}
	own.Annotations[capi.WithMachines] = ""
	broken.Annotations["cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"] = "many"
	for name, to := range map[string]*clusterv1.MachineTemplateSpec{"workers": &workers.Spec.Template, "set": &set.Spec.Template, "pool": &pool.Spec.Template, "own": &own.Spec.Template, "broken": &broken.Spec.Template} {
		to.Labels = map[string]string{groupLabel: name}
		to.Spec.ClusterName = "c"
		to.Spec.Bootstrap.DataSecretName = ptr.To("bootstrap")
		to.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "PlayedMachineTemplate", Name: name}
	}
	selector := func(name string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: name}}
	}
	none := ptr.To[int32](0)
	workers.Spec.ClusterName, workers.Spec.Replicas, workers.Spec.Selector = "c", none, selector("workers")
	broken.Spec.ClusterName, broken.Spec.Replicas, broken.Spec.Selector = "c", none, selector("broken")
	set.Spec.ClusterName, set.Spec.Replicas, set.Spec.Selector = "c", none, selector("set")
	pool.Spec.ClusterName, pool.Spec.Replicas = "c", none
	own.Spec.ClusterName, own.Spec.Replicas = "c", none
	for _, x := range []struct {
		resource schema.GroupVersionResource
		o        any
	}{{capi.Deployments, workers}, {capi.Deployments, broken}, {capi.Sets, set}, {capi.Pools, pool}, {capi.Pools, own}} {
		if err := capi.Create(t.Context(), objects, x.resource, x.o); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	_, p.log = startBerth(t, c, "--cloud-provider=clusterapi", "--scan-interval=1s", "--scale-down-unneeded-time=5s", "--scale-down-delay-after-add=1s", "--initial-node-group-backoff-duration=10s")
	return p
}

// pod creates a pod that needs a node of a group for itself.
func (p *played) pod(name, group string) {
	p.t.Helper()
	o := pod(name, "3")
	o.Spec.NodeSelector = map[string]string{groupLabel: group}
	create(p.t, p.client, o)
}

// runs waits until a pod runs.
func (p *played) runs(name string) {
	p.t.Helper()
	eventually(p.t, "the pod "+name+" to run", func(ctx context.Context) bool { return get(ctx, p.client, name).Status.Phase == v1.PodRunning })
}

// node returns the name of a pod's node.
func (p *played) node(name string) string { return get(p.t.Context(), p.client, name).Spec.NodeName }

// sizes returns how many nodes each group wants.
func (p *played) sizes() string {
	p.t.Helper()
	var out []string
	for _, x := range []struct {
		resource schema.GroupVersionResource
		name     string
	}{{capi.Deployments, "workers"}, {capi.Sets, "set"}, {capi.Pools, "pool"}, {capi.Pools, "own"}, {capi.Deployments, "broken"}} {
		o, err := p.objects.Resource(x.resource).Namespace(v1.NamespaceDefault).Get(p.t.Context(), x.name, metav1.GetOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		n, _, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, fmt.Sprint(x.name, " ", n))
	}
	return strings.Join(out, ", ")
}

// machines returns the names of all Machines.
func (p *played) machines() string {
	p.t.Helper()
	all, err := p.objects.Resource(capi.Machines).List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for i := range all.Items {
		out = append(out, all.Items[i].GetName())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// nodes returns the names of all nodes, sorted, those of Machines before those of pools by name.
func (p *played) nodes() []string {
	p.t.Helper()
	all, err := p.client.CoreV1().Nodes().List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	var out []string
	for i := range all.Items {
		out = append(out, all.Items[i].Name)
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(b, a) })
	return out
}

// happened waits until there is an event.
func (p *played) happened(reason, note string) {
	p.t.Helper()
	eventually(p.t, "an event "+reason+": "+note, func(ctx context.Context) bool {
		all, err := p.client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool { return e.Reason == reason && e.Note == note })
	})
}

// logged waits until Berth has logged a line that has all of some texts.
func (p *played) logged(texts ...string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("a line in Berth's log with %q", texts), func(context.Context) bool {
		raw, _ := os.ReadFile(p.log)
		for line := range strings.Lines(string(raw)) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return true
			}
		}
		return false
	})
}
