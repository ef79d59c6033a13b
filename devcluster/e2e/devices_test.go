package e2e

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file is what the dev cluster has of devices: its API server serves them, a simulated driver
// publishes them, and the controller manager makes claims of templates and ends them.

// TestDevicesOfTheDevCluster has kube-scheduler place pods with devices of the simulated driver.
func TestDevicesOfTheDevCluster(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	driver, err := devices.New(client, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	makeNode(t, client, "gpus", "8Gi")
	template := testkit.ResourceClaimTemplate("gpu", testkit.ResourceClaim("", testkit.Request("gpu", devices.Class)))
	if _, err := client.ResourceV1().ResourceClaimTemplates(v1.NamespaceDefault).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	startScheduler(t, c, schedulerConfig(t, c, schedulerDefaults))

	create(t, client, deviceful("first"))
	eventually(t, "the pod to be refused while no devices are published", func(ctx context.Context) bool {
		return refusal(get(ctx, client, "first")) != ""
	})
	node, err := client.CoreV1().Nodes().Get(t.Context(), "gpus", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Publish(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to run when they are", func(ctx context.Context) bool { return get(ctx, client, "first").Status.Phase == v1.PodRunning })
	if got := deviceOf(t.Context(), client, "first"); got != "gpu-0" {
		t.Errorf("the claim has the device %q, want gpu-0", got)
	}

	if err := driver.Taint(t.Context(), "gpus", 1, resourcev1.DeviceTaintEffectNoSchedule); err != nil {
		t.Fatal(err)
	}
	create(t, client, deviceful("second"))
	eventually(t, "the pod to be refused while the other device is tainted", func(ctx context.Context) bool {
		return refusal(get(ctx, client, "second")) != ""
	})
	if err := driver.Taint(t.Context(), "gpus", 1, ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to run when it isn't", func(ctx context.Context) bool { return deviceOf(ctx, client, "second") == "gpu-1" })

	if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim to go with its pod", func(ctx context.Context) bool {
		claims, err := client.ResourceV1().ResourceClaims(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err == nil && len(claims.Items) == 1
	})

	// A rule evicts what has the devices of a pool.
	rule := testkit.DeviceTaintRule("evict", devices.Name, "gpus", "", devices.Tainted, resourcev1.DeviceTaintEffectNoExecute)
	if _, err := client.ResourceV1().DeviceTaintRules().Create(t.Context(), rule, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other pod to be evicted", func(ctx context.Context) bool { return get(ctx, client, "second").Name == "" })
}

// deviceful returns a pod with a claim of the template gpu.
func deviceful(name string) *v1.Pod {
	p := pod(name, "100m")
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
	p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
	return p
}

// deviceOf returns the device that a pod's claim has, "" for none.
func deviceOf(ctx context.Context, client kubernetes.Interface, pod string) string {
	for _, s := range get(ctx, client, pod).Status.ResourceClaimStatuses {
		c, err := client.ResourceV1().ResourceClaims(v1.NamespaceDefault).Get(ctx, *s.ResourceClaimName, metav1.GetOptions{})
		if err == nil && c.Status.Allocation != nil {
			return c.Status.Allocation.Devices.Results[0].Device
		}
	}
	return ""
}
