package realnode_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/components"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/realnode"
)

// TestMain plays the components of the cluster, too: the cluster starts this program for each.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "component" {
		cmd := components.Command()
		cmd.SetArgs(os.Args[2:])
		if err := cmd.Execute(); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// cluster is a control plane with Berth and a real node.
type cluster struct {
	client kubernetes.Interface
	node   *realnode.Node
}

// start starts it: make build and ./hack/build-node must have been run.
func start(t *testing.T) *cluster {
	t.Helper()
	ctx := t.Context()
	c, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	client, err := api.New(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := filepath.Abs("../bin/node")
	if err != nil {
		t.Fatal(err)
	}
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "berth.log")
	berth, err := controlplane.StartProcess("berth", log, filepath.Join(bin, "../../../bin/berth"), "run", "--kubeconfig", c.Kubeconfig, "--secure-port=0", "--leader-elect=false")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		berth.Stop(10 * time.Second)
		if t.Failed() {
			tell(t, client, log)
		}
	})
	n, err := realnode.Start(ctx, client, realnode.Options{Name: "real", Kubeconfig: c.Kubeconfig, Programs: bin, Dir: filepath.Join(t.TempDir(), "node"), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
		if left, _ := exec.Command("pgrep", "-f", "containerd-shim.*"+t.Name()).Output(); len(bytes.TrimSpace(left)) > 0 {
			t.Errorf("shims are left behind: %s", left)
		}
	})
	return &cluster{client, n}
}

// tell logs what the cluster says of its pods, and how Berth's log ends.
func tell(t *testing.T, client kubernetes.Interface, log string) {
	ctx := context.Background() // the test's is over
	if pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err == nil {
		for _, p := range pods.Items {
			t.Logf("pod %s on %q: %s %+v", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Conditions)
		}
	}
	if events, err := client.CoreV1().Events("").List(ctx, metav1.ListOptions{}); err == nil {
		for _, e := range events.Items {
			t.Logf("event of %s: %s %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	text, _ := os.ReadFile(log)
	t.Logf("Berth's log ends with\n%s", text[max(0, len(text)-4000):])
}

// eventually waits for something for a minute and a half at most.
func eventually(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// template is what pods are like: a container that waits, and stops at once.
func template(cpu, priority string) v1.PodTemplateSpec {
	grace, no := int64(10), false
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "waits"}}, Spec: v1.PodSpec{
		PriorityClassName: priority, TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no,
		Containers: []v1.Container{{Name: "waits", Image: realnode.Image, ImagePullPolicy: v1.PullNever,
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}},
	}}
}

// pod creates a pod.
func (c *cluster) pod(t *testing.T, name, cpu, priority string) {
	t.Helper()
	spec := template(cpu, priority)
	_, err := c.client.CoreV1().Pods("default").Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec.Spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// containers returns the IDs of a running pod's containers, without those of another runtime; none while it doesn't run.
func (c *cluster) containers(ctx context.Context, name string) (ids []string) {
	p, err := c.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil || p.Status.Phase != v1.PodRunning {
		return nil
	}
	for _, s := range p.Status.ContainerStatuses {
		if id, ok := strings.CutPrefix(s.ContainerID, "containerd://"); ok && s.State.Running != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestRealNode has Berth place pods on a node whose kubelet runs them: their containers run; those of lower priority
// are stopped for one of higher priority, which then runs; and a pod that is evicted from the cordoned node gets
// a replacement that waits, and runs once the node takes pods again.
func TestRealNode(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	for name, value := range map[string]int32{"high": 1000, "low": 10} {
		if _, err := c.client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	node, err := c.client.CoreV1().Nodes().Get(ctx, "real", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cores := node.Status.Allocatable.Cpu().MilliValue()
	share := func(part int64) string { return resource.NewMilliQuantity(cores*part/100, resource.DecimalSI).String() }

	c.pod(t, "a", share(40), "low")
	c.pod(t, "b", share(40), "low")
	var ids []string
	eventually(t, "two pods to run", func(ctx context.Context) bool {
		ids = append(c.containers(ctx, "a"), c.containers(ctx, "b")...)
		return len(ids) == 2
	})
	for _, id := range ids {
		if !c.node.Runs(id) {
			t.Errorf("container %s doesn't run", id)
		}
	}

	c.pod(t, "urgent", share(90), "high")
	eventually(t, "the pod of high priority to run", func(ctx context.Context) bool { return len(c.containers(ctx, "urgent")) == 1 })
	for _, id := range ids {
		if c.node.Runs(id) {
			t.Errorf("container %s of a victim still runs", id)
		}
	}
	if err := c.client.CoreV1().Pods("default").Delete(ctx, "urgent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	one := int32(1)
	_, err = c.client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "service"}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "waits"}}, Template: template(share(10), "")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := c.serves(t, "")
	c.cordon(t, true)
	if err := c.client.PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: first}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replacement to wait", func(ctx context.Context) bool {
		list, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=waits"})
		return err == nil && len(list.Items) == 1 && list.Items[0].Name != first && list.Items[0].Spec.NodeName == "" && len(list.Items[0].Status.Conditions) > 0
	})
	c.cordon(t, false)
	c.serves(t, first)
}

// serves waits until a pod of the service runs that isn't another, and returns its name.
func (c *cluster) serves(t *testing.T, not string) (name string) {
	t.Helper()
	eventually(t, "a pod of the service to run", func(ctx context.Context) bool {
		list, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=waits"})
		if err != nil {
			return false
		}
		for _, p := range list.Items {
			if ids := c.containers(ctx, p.Name); p.Name != not && len(ids) == 1 && c.node.Runs(ids[0]) {
				name = p.Name
			}
		}
		return name != ""
	})
	return name
}

// cordon says whether the node takes pods.
func (c *cluster) cordon(t *testing.T, on bool) {
	t.Helper()
	patch := `{"spec":{"unschedulable":false}}`
	if on {
		patch = `{"spec":{"unschedulable":true}}`
	}
	if _, err := c.client.CoreV1().Nodes().Patch(t.Context(), "real", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
