package e2e

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/devcluster/kubelets"
)

// publishDevices publishes some GPUs of a node, as a driver does, and a class of them that backs an
// extended resource.
func publishDevices(t *testing.T, client kubernetes.Interface, count int, nodes ...string) {
	t.Helper()
	resource := client.ResourceV1()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}}
	class.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	if _, err := resource.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"}}
		s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}
		for i := range count {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
		}
		if _, err := resource.ResourceSlices().Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// devicesTaken returns how many devices claims have, and fails the test when one has two.
func devicesTaken(ctx context.Context, t *testing.T, client kubernetes.Interface) (taken int) {
	t.Helper()
	claims, err := client.ResourceV1().ResourceClaims(v1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	owners := map[string]string{}
	for _, c := range claims.Items {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			device := r.Pool + "/" + r.Device
			if other := owners[device]; other != "" {
				t.Errorf("claims %s and %s have the device %s", other, c.Name, device)
			}
			owners[device] = c.Name
		}
	}
	return len(owners)
}

// TestDevices has a Job of pods with a claim template get devices from the slices of two nodes, against
// the real resource claim controller: twice as many pods as there are devices, so that half of them wait
// until the others have ended. Then a pod gets a device by an extended resource, and in the end all
// devices are free.
func TestDevices(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	startBerth(t, c)
	makeNode(t, client, "n1", "8Gi")
	makeNode(t, client, "n2", "8Gi")
	publishDevices(t, client, 2, "n1", "n2")
	ctx, meta := t.Context(), metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: "train"}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: meta}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpus"}}}
	if _, err := client.ResourceV1().ResourceClaimTemplates(meta.Namespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	worker := pod("", "100m")
	worker.Annotations[kubelets.RunFor] = "3s"
	worker.Spec.RestartPolicy = v1.RestartPolicyNever
	worker.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template.Name}}
	worker.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](8), Completions: ptr.To[int32](8),
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: worker.Annotations}, Spec: worker.Spec}}}
	if _, err := client.BatchV1().Jobs(meta.Namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all := false
	eventually(t, "the Job to complete, four pods at a time", func(ctx context.Context) bool {
		taken := devicesTaken(ctx, t, client)
		all = all || taken == 4
		j, err := client.BatchV1().Jobs(meta.Namespace).Get(ctx, meta.Name, metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 8
	})
	if !all {
		t.Error("never were all four devices taken")
	}
	eventually(t, "the devices to be free", func(ctx context.Context) bool { return devicesTaken(ctx, t, client) == 0 })

	extended := pod("extended", "100m")
	extended.Spec.Containers[0].Resources.Requests["example.com/gpu"] = list("n", "1")["n"]
	extended.Spec.Containers[0].Resources.Limits = list("example.com/gpu", "1")
	create(t, client, extended)
	eventually(t, "the pod with an extended resource to run, and to say which claim it has", func(ctx context.Context) bool {
		p := get(ctx, client, "extended")
		s := p.Status.ExtendedResourceClaimStatus
		return p.Status.Phase == v1.PodRunning && s != nil && len(s.RequestMappings) == 1 && devicesTaken(ctx, t, client) == 1
	})
	if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(ctx, "extended", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its device to be free", func(ctx context.Context) bool { return devicesTaken(ctx, t, client) == 0 })
}
