package conformance_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/devcluster/oracle"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file fixes what kube-scheduler answers about pods with claims for devices, in
// clusters that people made up, so that the oracle itself is known to be fed right. The
// cluster has the nodes n0 in zone a and n1 in zone b, both with room.

// The driver and the classes that most cases have.
const driver = "gpu.example"

var gpus = testkit.DeviceClass("gpus", "example.com/gpu", `device.driver == "gpu.example"`)

// deviceCase is a pod, the objects beside it, and what kube-scheduler says (said).
type deviceCase struct {
	name    string
	objects []metav1.Object
	pod     *testkit.PodBuilder // nil: it uses the claim "c"
	nodes   func(n0, n1 *testkit.NodeBuilder)
	want    string
	want36  string // of 1.36, when it differs
}

// slice returns the slice of a node's own devices of the driver.
func slice(node string, devices ...*testkit.DeviceBuilder) *resourcev1.ResourceSlice {
	return testkit.NodeSlice(driver, node).Devices(devices...).Obj()
}

// one returns a claim "c" for one device of class gpus.
func one() *testkit.ResourceClaimBuilder {
	return testkit.ResourceClaim("c", testkit.Request("q", "gpus"))
}

// takes returns another claim, to which devices of a pool of the driver are allocated.
func takes(pool string, devices ...string) *resourcev1.ResourceClaim {
	var all []resourcev1.DeviceRequestAllocationResult
	for _, d := range devices {
		all = append(all, testkit.Allocation("q", driver, pool, d))
	}
	return testkit.ResourceClaim("taken", testkit.Request("q", "gpus")).Allocated(all...).OnNode(pool).ReservedFor("other").Obj()
}

const (
	nothing = "n0: DynamicResources: cannot allocate all claims\nn1: DynamicResources: cannot allocate all claims\n" + helpless
	// helpless is the end of the message of a pod that fits nowhere.
	helpless = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)

// heldFor is what is said about a pod that isn't let into the queue for a reason.
func heldFor(why string) string {
	return fmt.Sprintf("n0: DynamicResources: %[1]s\nn1: DynamicResources: %[1]s\nheld by DynamicResources: %[1]s\n%[2]s", why, helpless)
}

func plain(names ...string) []*testkit.DeviceBuilder { return testkit.NamedDevices(names...) }

func objects(list ...metav1.Object) []metav1.Object { return append(list, gpus) }

// run evaluates the case in a version.
func (c *deviceCase) run(t *testing.T, upstream peer) {
	t.Helper()
	n0 := testkit.Node("n0").Alloc("cpu", "8", "memory", "16Gi").Zone("a")
	n1 := testkit.Node("n1").Alloc("cpu", "8", "memory", "16Gi").Zone("b")
	if c.nodes != nil {
		c.nodes(n0, n1)
	}
	in := &oracle.Cluster{Nodes: []*v1.Node{n0.Obj(), n1.Obj()}, Objects: c.objects}
	if err := upstream.Set(in); err != nil {
		t.Fatal(err)
	}
	pod := c.pod
	if pod == nil {
		pod = testkit.Pod("pod").Claims("c")
	}
	want := c.want
	if upstream.version == compat.V36 && c.want36 != "" {
		want = c.want36
	}
	for range 2 { // asking leaves no trace
		out, err := upstream.Evaluate(t.Context(), pod.Obj())
		if err != nil {
			t.Fatal(err)
		}
		if got := said(in, out); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// said writes out what an outcome says about devices: for each node what the claims get
// there and the raw score, or why not; then what happens to the pod as a whole.
func said(in *oracle.Cluster, out *oracle.Outcome) string {
	var lines []string
	for _, n := range in.Nodes {
		if a, ok := out.Nodes[n.Name]; ok {
			lines = append(lines, n.Name+": "+saidOfNode(a))
		}
	}
	if !out.Held.OK {
		lines = append(lines, fmt.Sprintf("held by %s: %s", out.Held.Plugin, strings.Join(out.Held.Messages, "; ")))
	}
	if out.Deallocated != "" {
		lines = append(lines, "deallocates "+out.Deallocated)
	}
	if out.Error != "" {
		lines = append(lines, "error: "+out.Error)
	}
	if _, after, ok := strings.Cut(out.Message, "preemption: "); ok {
		lines = append(lines, "preemption: "+after)
	} else if out.Message != "" {
		lines = append(lines, out.Message)
	}
	return strings.Join(lines, "\n")
}

func saidOfNode(a oracle.Answer) string {
	if a.Error != "" {
		return "an error"
	}
	if !a.OK {
		return a.Plugin + ": " + strings.Join(a.Messages, "; ")
	}
	parts := []string{"ok"}
	for _, x := range a.Allocations {
		for _, r := range x.Result.Devices.Results {
			part := fmt.Sprintf("%s/%s=%s/%s/%s", x.Claim, r.Request, r.Driver, r.Pool, r.Device)
			for name, q := range r.ConsumedCapacity {
				part += fmt.Sprintf(" %s=%s", name, q.String())
			}
			if r.AdminAccess != nil {
				part += " admin"
			}
			parts = append(parts, part)
		}
	}
	if raw := a.Raw["DynamicResources"]; raw > 0 {
		parts = append(parts, fmt.Sprint("score ", raw))
	}
	return strings.Join(parts, " ")
}

// TestDevicesOfKubeScheduler: kube-scheduler answers the cases as its source says.
func TestDevicesOfKubeScheduler(t *testing.T) {
	eachVersion(t, func(t *testing.T, v compat.Version) {
		upstream, err := peerWith(t, v, oracle.Setup{Devices: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range deviceCases {
			t.Run(c.name, func(t *testing.T) { c.run(t, upstream) })
		}
	})
}

// TestPropertyDevicesAnswersLeaveNoTrace: kube-scheduler's answers about random pods with claims don't
// depend on what it was asked before, and the devices that it chooses are published and free.
func TestPropertyDevicesAnswersLeaveNoTrace(t *testing.T) {
	eachVersion(t, func(t *testing.T, v compat.Version) {
		upstream, err := peerWith(t, v, oracle.Setup{Devices: true})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		t.Cleanup(func() { reachedDevices(t, seen) })
		rapid.Check(t, func(rt *rapid.T) { askTwice(rt, upstream, seen) })
	})
}

// askTwice draws a cluster with devices and three pods, and has kube-scheduler answer about each twice.
func askTwice(t *rapid.T, upstream peer, seen map[string]int) {
	c := randomCluster(t)
	if !hasDevices(c) {
		addDevices(t, c)
	}
	if err := upstream.Set(c); err != nil {
		t.Fatal(err)
	}
	ask := func(p *v1.Pod) *oracle.Outcome {
		out, err := upstream.Evaluate(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var pods []*v1.Pod
	var first []*oracle.Outcome
	for i := range 3 {
		p := incoming(t, fmt.Sprint("new", i))
		wantDevices(t, p)
		pods, first = append(pods, p), append(first, ask(p))
		countDevices(seen, first[i])
		checkChosen(t, c, first[i])
	}
	for i, p := range pods {
		if len(p.Spec.Volumes) > 0 { // of two for one claim kube-scheduler takes any
			continue
		}
		again := ask(p)
		// Which of several claims is deallocated is drawn.
		again.Deallocated, first[i].Deallocated = "", ""
		if problem := difference(c, first[i], again); problem != "" {
			t.Fatalf("%sasked again about pod %s: %s", show(c, p), p.Name, problem)
		}
	}
}

// checkChosen checks that chosen devices are in slices and, unless they are shared or for
// admin access, not allocated.
func checkChosen(t *rapid.T, c *oracle.Cluster, out *oracle.Outcome) {
	published, taken := map[string]bool{}, map[string]bool{}
	for _, o := range c.Objects {
		switch x := o.(type) {
		case *resourcev1.ResourceSlice:
			for _, d := range x.Spec.Devices {
				published[x.Spec.Driver+"/"+x.Spec.Pool.Name+"/"+d.Name] = true
			}
		case *resourcev1.ResourceClaim:
			if x.Status.Allocation == nil {
				continue
			}
			for _, r := range x.Status.Allocation.Devices.Results {
				if r.ShareID == nil && r.AdminAccess == nil {
					taken[r.Driver+"/"+r.Pool+"/"+r.Device] = true
				}
			}
		}
	}
	for node, a := range out.Nodes {
		for _, x := range a.Allocations {
			for _, r := range x.Result.Devices.Results {
				id := r.Driver + "/" + r.Pool + "/" + r.Device
				if !published[id] || taken[id] && r.AdminAccess == nil {
					t.Fatalf("on node %s the claim %s gets %s, published: %v, taken: %v", node, x.Claim, id, published[id], taken[id])
				}
			}
		}
	}
}

// countDevices counts what an outcome has reached.
func countDevices(seen map[string]int, out *oracle.Outcome) {
	if out.Error != "" {
		seen["error: "+kindOf(out.Error)]++
	}
	if !out.Held.OK {
		seen["held: "+kindOf(strings.Join(out.Held.Messages, ""))]++
	}
	if out.Deallocated != "" {
		seen["deallocates"]++
	}
	for _, a := range out.Nodes {
		switch {
		case len(a.Allocations) > 0:
			seen["chooses devices"]++
			if a.Raw["DynamicResources"] > 0 {
				seen["scores"]++
			}
			for _, x := range a.Allocations {
				if x.Requests != nil {
					seen["chooses devices for extended resources"]++
				}
				for _, r := range x.Result.Devices.Results {
					if r.ConsumedCapacity != nil {
						seen["chooses shares"]++
					}
					if r.AdminAccess != nil {
						seen["chooses for admin access"]++
					}
					if r.BindingConditions != nil {
						seen["chooses with binding conditions"]++
					}
				}
				seen["chooses from "+placeOf(x.Result.NodeSelector)]++
			}
		case a.OK:
			seen["feasible"]++
		case a.Plugin == "DynamicResources" && a.Error == "":
			seen["rejects: "+kindOf(strings.Join(a.Messages, ""))]++
		}
	}
}

// placeOf says how an allocation is pinned.
func placeOf(s *v1.NodeSelector) string {
	switch {
	case s == nil:
		return "pools of all nodes"
	case len(s.NodeSelectorTerms[0].MatchFields) > 0:
		return "a node's pool"
	}
	return "pools of some nodes"
}

// kindOf returns a message without what differs from case to case.
func kindOf(message string) string {
	words := strings.Fields(message)
	var out []string
	for _, w := range words {
		if !strings.ContainsAny(w, `"/0123456789`) {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

// reachedDevices logs what random cases have reached, and fails the test if they were many
// and haven't reached what they must.
func reachedDevices(t *testing.T, seen map[string]int) {
	logSeen(t, seen)
	for _, k := range []string{"chooses devices", "scores", "chooses devices for extended resources", "chooses shares", "chooses for admin access",
		"chooses with binding conditions", "chooses from pools of all nodes", "chooses from pools of some nodes", "chooses from a node's pool", "deallocates",
		"rejects: cannot allocate all claims", "rejects: resourceclaim not available on the node",
		"rejects: cannot schedule extended resource claim"} {
		if seen[k] == 0 && seen["chooses devices"] > 2000 && !t.Failed() {
			t.Errorf("no case has reached: %s", k)
		}
	}
}
