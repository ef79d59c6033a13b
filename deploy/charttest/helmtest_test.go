package charttest

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHelmTest runs helm test with the program of the image as the pod's container: it asks the leader for its status as
// a viewer, through the API server.
func TestHelmTest(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	c.makeNode("n1")
	port := freePort(t)
	must(t, c.install(map[string]any{"flags": map[string]any{"secure-port": float64(port), "bind-address": "127.0.0.1"}}))
	c.runContainer("berth")
	eventually(t, "Berth to lead", func(ctx context.Context) bool { return leaseHolder(ctx, c) != "" })
	c.standIn("berth", "n1")

	tested := make(chan error, 1)
	go func() {
		r := action.NewReleaseTesting(c.helm)
		r.Namespace, r.Timeout = namespace, time.Minute
		_, shutdown, err := r.Run("berth")
		if shutdown != nil {
			err = errors.Join(err, shutdown())
		}
		tested <- err
	}()
	said := c.runTestPod()
	if err := <-tested; err != nil || !strings.Contains(said, "Berth "+imageVersion) {
		t.Errorf("helm test: %v; its pod says\n%s", err, said)
	}
	left, err := c.objects(ctx, "app.kubernetes.io/name=berth-test")
	if err != nil || len(left) > 0 {
		t.Errorf("helm test leaves %v (%v)", left, err)
	}
}

// standIn creates the Pod object that stands for the container of Berth, which is a process of this machine, on a node.
func (c *cluster) standIn(account, node string) {
	c.t.Helper()
	host, err := os.Hostname()
	must(c.t, err)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: host, Labels: map[string]string{"app.kubernetes.io/name": "berth", "app.kubernetes.io/instance": "berth"}}}
	p.Spec.NodeName, p.Spec.ServiceAccountName = node, account
	p.Spec.Containers = []v1.Container{{Name: "berth", Image: "none"}}
	_, err = c.client.CoreV1().Pods(namespace).Create(c.t.Context(), p, metav1.CreateOptions{})
	must(c.t, err)
	eventually(c.t, "the pod that stands for Berth to run", func(ctx context.Context) bool {
		p, err := c.client.CoreV1().Pods(namespace).Get(ctx, host, metav1.GetOptions{})
		return err == nil && p.Status.Phase == v1.PodRunning
	})
}

// runTestPod waits for the pod of helm test, runs its container and reports how it has ended, as a kubelet does. It returns
// what the container said.
func (c *cluster) runTestPod() string {
	c.t.Helper()
	pods := c.client.CoreV1().Pods(namespace)
	var p *v1.Pod
	eventually(c.t, "the pod of helm test", func(ctx context.Context) (ok bool) {
		var err error
		p, err = pods.Get(ctx, "berth-test", metav1.GetOptions{})
		return err == nil
	})
	x := c.run(&p.Spec, &p.Spec.Containers[0])
	p.Status.Phase = v1.PodSucceeded
	if err := <-x.ended; err != nil {
		p.Status.Phase = v1.PodFailed
	}
	_, err := pods.UpdateStatus(c.t.Context(), p, metav1.UpdateOptions{})
	must(c.t, err)
	return x.said()
}
