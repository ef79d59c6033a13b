package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file is what suites and published manifests expect of a cluster, and the dev cluster
// has although it runs no containers.

// TestClusterIsComplete checks one thing in each subtest, on one cluster with a Berth.
func TestClusterIsComplete(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	_, log := startBerth(t, c)
	for _, part := range []struct {
		name string
		test func(*testing.T, *controlplane.Cluster, kubernetes.Interface)
	}{
		{"clients can parse the version", versionParses},
		{"namespaces get an account and the certificate authority", namespacesAreFurnished},
		{"nodes have addresses, versions and labels", nodesAreDescribed},
		{"capacity that is patched becomes allocatable", capacityIsAllocatable},
		{"services have endpoints", servicesHaveEndpoints},
		{"roles are aggregated", rolesAreAggregated},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, c, client) })
	}
	t.Run("the extension API server's configuration is there", func(t *testing.T) {
		m, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		if err != nil || !strings.Contains(m.Data["requestheader-client-ca-file"], "BEGIN CERTIFICATE") || m.Data["requestheader-allowed-names"] != `["front-proxy-client"]` {
			t.Errorf("the ConfigMap has %v (%v)", m.Data, err)
		}
		raw, _ := os.ReadFile(log)
		for line := range strings.Lines(string(raw)) {
			if strings.Contains(line, "requestheader") || strings.Contains(line, "authentication") && strings.HasPrefix(line, "E") {
				t.Errorf("Berth complains: %s", line)
			}
		}
	})
}

func versionParses(t *testing.T, _ *controlplane.Cluster, client kubernetes.Interface) {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	v, err := version.ParseSemantic(info.GitVersion)
	if err != nil || info.GitVersion != controlplane.Version || info.Major != "1" || info.Minor != fmt.Sprint(v.Minor()) {
		t.Errorf("the version is %+v (%v), want %s", info, err, controlplane.Version)
	}
}

func namespacesAreFurnished(t *testing.T, _ *controlplane.Cluster, client kubernetes.Interface) {
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to have an account and a certificate authority", func(ctx context.Context) bool {
		_, err := client.CoreV1().ServiceAccounts("fresh").Get(ctx, "default", metav1.GetOptions{})
		m, err2 := client.CoreV1().ConfigMaps("fresh").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil && err2 == nil && strings.Contains(m.Data["ca.crt"], "BEGIN CERTIFICATE")
	})
	p := pod("p", "1")
	p.Namespace = "fresh"
	create(t, client, p)
	got, err := client.CoreV1().Pods("fresh").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || got.Spec.ServiceAccountName != "default" || len(got.Spec.Containers[0].VolumeMounts) != 1 {
		t.Errorf("the pod runs as %q with %d mounts (%v), want default and the token's", got.Spec.ServiceAccountName, len(got.Spec.Containers[0].VolumeMounts), err)
	}
}

func nodesAreDescribed(t *testing.T, _ *controlplane.Cluster, client kubernetes.Interface) {
	makeNode(t, client, "described", "8Gi")
	eventually(t, "the node to be described", func(ctx context.Context) bool {
		n, err := client.CoreV1().Nodes().Get(ctx, "described", metav1.GetOptions{})
		has := func(kind v1.NodeAddressType) bool {
			return slices.ContainsFunc(n.Status.Addresses, func(a v1.NodeAddress) bool { return a.Type == kind && a.Address != "" })
		}
		return err == nil && has(v1.NodeInternalIP) && has(v1.NodeHostName) && strings.HasPrefix(n.Status.NodeInfo.KubeletVersion, "v1.") &&
			n.Labels[v1.LabelOSStable] == "linux" && len(n.Status.Conditions) == 4 && n.Status.Capacity.Cpu().String() == "4"
	})
}

func capacityIsAllocatable(t *testing.T, _ *controlplane.Cluster, client kubernetes.Interface) {
	makeNode(t, client, "advertised", "8Gi")
	patch := []byte(`[{"op": "add", "path": "/status/capacity/example.com~1foo", "value": "5"}]`)
	eventually(t, "the capacity to be patched", func(ctx context.Context) bool {
		_, err := client.CoreV1().Nodes().Patch(ctx, "advertised", types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
		return err == nil // the kubelet writes the capacity first
	})
	p := pod("foo", "1")
	for _, l := range []*v1.ResourceList{&p.Spec.Containers[0].Resources.Requests, &p.Spec.Containers[0].Resources.Limits} {
		*l = list("example.com/foo", "5")
	}
	create(t, client, p)
	eventually(t, "a pod with the resource to run", func(ctx context.Context) bool {
		p := get(ctx, client, "foo")
		return p.Spec.NodeName == "advertised" && p.Status.Phase == v1.PodRunning
	})
}

func servicesHaveEndpoints(t *testing.T, _ *controlplane.Cluster, client kubernetes.Interface) {
	makeNode(t, client, "serving", "8Gi")
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{{Port: 80}}}}
	if _, err := client.CoreV1().Services(v1.NamespaceDefault).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := pod("web", "1")
	p.Labels = map[string]string{"app": "web"}
	create(t, client, p)
	eventually(t, "the service to have the pod's address", func(ctx context.Context) bool {
		slices, err := client.DiscoveryV1().EndpointSlices(v1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		return err == nil && len(slices.Items) == 1 && len(slices.Items[0].Endpoints) == 1 && slices.Items[0].Endpoints[0].Addresses[0] == get(ctx, client, "web").Status.PodIP
	})
}

func rolesAreAggregated(t *testing.T, _ *controlplane.Cluster, client kubernetes.Interface) {
	eventually(t, "the role view to have rules", func(ctx context.Context) bool {
		r, err := client.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
		return err == nil && len(r.Rules) > 0
	})
}
