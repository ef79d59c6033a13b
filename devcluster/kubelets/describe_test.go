package kubelets

import (
	"encoding/json"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// merged returns a node with a patch merged into it, as the API server does it.
func merged(t *testing.T, n *v1.Node, patch map[string]any) *v1.Node {
	t.Helper()
	old, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = strategicpatch.StrategicMergePatch(old, raw, v1.Node{}); err != nil {
		t.Fatal(err)
	}
	out := &v1.Node{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMissingResources has, for each resource, a capacity and what can be allocated before
// and after the kubelet has completed the node; "" is none.
func TestMissingResources(t *testing.T) {
	for _, c := range []struct {
		name, resource                            string
		capacity, allocatable                     string
		capacityAfterwards, allocatableAfterwards string
	}{
		{"only allocatable was given", "cpu", "", "4", "4", "4"},
		{"only capacity was given", "cpu", "4", "", "4", "4"},
		{"a reserve stays", "memory", "8Gi", "7Gi", "8Gi", "7Gi"},
		{"no more than there is", "memory", "8Gi", "9Gi", "8Gi", "8Gi"},
		{"an extended resource is advertised", "example.com/foo", "10", "", "10", "10"},
		{"an extended resource grows", "example.com/foo", "10", "5", "10", "10"},
		{"an extended resource is taken away", "example.com/foo", "0", "5", "0", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &v1.Node{Status: v1.NodeStatus{Capacity: v1.ResourceList{}, Allocatable: v1.ResourceList{}}}
			set := func(l v1.ResourceList, q string) {
				if q != "" {
					l[v1.ResourceName(c.resource)] = resource.MustParse(q)
				}
			}
			set(n.Status.Capacity, c.capacity)
			set(n.Status.Allocatable, c.allocatable)
			got := merged(t, n, missingStatus(n, newAddresses("10.0.0.0"), 0))
			for what, pair := range map[string][2]string{
				"capacity":    {quantity(got.Status.Capacity, c.resource), c.capacityAfterwards},
				"allocatable": {quantity(got.Status.Allocatable, c.resource), c.allocatableAfterwards},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
				}
			}
			if again := missingStatus(got, newAddresses("10.0.0.0"), 0); again != nil {
				t.Errorf("the completed node is patched again with %v", again)
			}
		})
	}
}

func quantity(l v1.ResourceList, name string) string {
	q := l[v1.ResourceName(name)]
	return q.String()
}

// TestMissingStatusSaysWhereTheKubeletServes: of a new node, of one with an address, and again when
// the port is another; without a port nothing is said.
func TestMissingStatusSaysWhereTheKubeletServes(t *testing.T) {
	ips := newAddresses("10.0.0.0")
	addressed := &v1.Node{Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.1.1.1"}}}}
	for name, n := range map[string]*v1.Node{"new": {}, "with an address": addressed} {
		for _, port := range []int{10250, 10251} {
			n = merged(t, n, missingStatus(n, ips, port))
			var serves []string
			for _, a := range n.Status.Addresses {
				if a.Type == v1.NodeInternalDNS {
					serves = append(serves, a.Address)
				}
			}
			if len(serves) != 1 || serves[0] != "localhost" || int(n.Status.DaemonEndpoints.KubeletEndpoint.Port) != port {
				t.Errorf("%s: the kubelet serves at %v port %d, want localhost and %d", name, serves, n.Status.DaemonEndpoints.KubeletEndpoint.Port, port)
			}
			if again := missingStatus(n, ips, port); again != nil {
				t.Errorf("%s: patched again with %v", name, again)
			}
		}
	}
	if n := merged(t, &v1.Node{}, missingStatus(&v1.Node{}, ips, 0)); n.Status.DaemonEndpoints.KubeletEndpoint.Port != 0 || len(n.Status.Addresses) != 2 {
		t.Errorf("without a port the status is %+v", n.Status)
	}
}

// TestMissingMetadataKeepsLabels: a label that the node has stays as it is.
func TestMissingMetadataKeepsLabels(t *testing.T) {
	n := &v1.Node{}
	n.Name, n.Labels = "n1", map[string]string{v1.LabelHostname: "other", "a": "b"}
	got := merged(t, n, missingMetadata(n))
	if got.Labels[v1.LabelHostname] != "other" || got.Labels["a"] != "b" || got.Labels[v1.LabelOSStable] != "linux" || got.Labels[v1.LabelArchStable] == "" {
		t.Errorf("the labels are %v", got.Labels)
	}
	if again := missingMetadata(got); again != nil {
		t.Errorf("the completed node is patched again with %v", again)
	}
}
