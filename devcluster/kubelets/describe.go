package kubelets

import (
	"runtime"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
)

// This file completes a node's object as a kubelet does that registers it: tests and
// providers create nodes with a name and what can be allocated, little else.
//
// Invariant: what the object says already stays, but for extended resources, of which a node
// has as many to allocate as its capacity says (somebody patches status.capacity to
// advertise some).

// missingMetadata returns a patch with the labels of a kubelet that a node lacks, nil for
// none.
func missingMetadata(n *v1.Node) map[string]any {
	labels := map[string]string{}
	for key, value := range map[string]string{v1.LabelHostname: n.Name, v1.LabelOSStable: "linux", v1.LabelArchStable: runtime.GOARCH} {
		if _, ok := n.Labels[key]; !ok {
			labels[key] = value
		}
	}
	if len(labels) == 0 {
		return nil
	}
	return map[string]any{"metadata": map[string]any{"labels": labels}}
}

// missingStatus returns a patch with what a node's status lacks, nil for nothing. A node
// without an address gets one of ips, and where its kubelet serves unless the port is 0.
func missingStatus(n *v1.Node, ips *addresses, port int) map[string]any {
	status := map[string]any{}
	if a := missingAddresses(n, ips, port); len(a) > 0 {
		status["addresses"] = a
	}
	if port != 0 && int(n.Status.DaemonEndpoints.KubeletEndpoint.Port) != port {
		status["daemonEndpoints"] = map[string]any{"kubeletEndpoint": map[string]any{"Port": port}}
	}
	if n.Status.NodeInfo.KubeletVersion == "" {
		status["nodeInfo"] = v1.NodeSystemInfo{
			KubeletVersion: version.Get().GitVersion, OperatingSystem: "linux", Architecture: runtime.GOARCH,
			OSImage: "none", KernelVersion: "none", ContainerRuntimeVersion: "simulated://1",
		}
	}
	if c := missingConditions(n); len(c) > 0 {
		status["conditions"] = c
	}
	capacity, allocatable := missingResources(n)
	if len(capacity) > 0 {
		status["capacity"] = capacity
	}
	if len(allocatable) > 0 {
		status["allocatable"] = allocatable
	}
	if len(status) == 0 {
		return nil
	}
	return map[string]any{"status": status}
}

// missingAddresses returns the addresses that a node lacks. Where its kubelet serves is the type
// that the API server is told to use (controlplane).
func missingAddresses(n *v1.Node, ips *addresses, port int) (out []v1.NodeAddress) {
	has := func(t v1.NodeAddressType) bool {
		return slices.ContainsFunc(n.Status.Addresses, func(a v1.NodeAddress) bool { return a.Type == t })
	}
	if !has(v1.NodeInternalIP) {
		out = append(out, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ips.of(string(n.UID))}, v1.NodeAddress{Type: v1.NodeHostName, Address: n.Name})
	}
	if port != 0 && !has(v1.NodeInternalDNS) {
		out = append(out, v1.NodeAddress{Type: v1.NodeInternalDNS, Address: "localhost"})
	}
	return out
}

// missingConditions returns the conditions of a kubelet without pressure that a node lacks.
func missingConditions(n *v1.Node) (out []v1.NodeCondition) {
	now := metav1.Now()
	for _, t := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
		if !slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == t }) {
			out = append(out, v1.NodeCondition{Type: t, Status: v1.ConditionFalse, Reason: "KubeletHasSufficient" + strings.TrimSuffix(string(t), "Pressure"),
				Message: "the simulated kubelet runs no containers", LastHeartbeatTime: now, LastTransitionTime: now})
		}
	}
	return out
}

// missingResources returns the quantities to write: a capacity for what can be allocated and
// has none, and of extended resources as many to allocate as the capacity says; of others
// the node's reserve may make the difference.
func missingResources(n *v1.Node) (capacity, allocatable v1.ResourceList) {
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for name, q := range n.Status.Allocatable {
		if _, ok := n.Status.Capacity[name]; !ok {
			capacity[name] = q
		}
	}
	for name, q := range n.Status.Capacity {
		have, ok := n.Status.Allocatable[name]
		if !ok || extended(name) && have.Cmp(q) != 0 || have.Cmp(q) > 0 {
			allocatable[name] = q
		}
	}
	return capacity, allocatable
}

// extended reports whether a resource is neither Kubernetes' own nor without a domain.
func extended(name v1.ResourceName) bool {
	domain, _, found := strings.Cut(string(name), "/")
	return found && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
