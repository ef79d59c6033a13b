package charttest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestInstall installs the chart with node groups, runs Berth as its Deployment says, and has
// it place a pod on a node that it buys for it; upgrades it to a Berth that only schedules, which
// does without the rights for nodes; and uninstalls it while Berth runs. Then nothing is left but the
// Lease and the status ConfigMap, which Berth makes itself: a release that had them would delete those of
// kube-scheduler and Cluster Autoscaler in their place.
func TestInstall(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	eventually(t, "the namespaces", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, "kube-node-lease", metav1.GetOptions{})
		return err == nil
	})
	before, err := c.objects(ctx, "")
	must(t, err)

	port := freePort(t)
	values := valuesOf(t, "simulated")
	values["flags"].(map[string]any)["secure-port"] = float64(port)
	values["flags"].(map[string]any)["bind-address"] = "127.0.0.1"
	values["flags"].(map[string]any)["scan-interval"] = "1s"
	must(t, c.install(values))
	lacksNone(t, c, "berth-simulated", "berth-scaling", "berth-scheduling")
	berth := c.runContainer("berth")
	probed(t, c, port)
	create(t, c, "first")
	eventually(t, "a pod on a node that was bought for it", func(ctx context.Context) bool { return on(ctx, c, "first") != "" })
	eventually(t, "the status ConfigMap", func(ctx context.Context) bool {
		m, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
		return err == nil && strings.Contains(m.Data["status"], "workers")
	})
	holder := leaseHolder(ctx, c)

	// An upgrade leaves what Berth has written alone.
	more := valuesOf(t, "simulated")
	more["flags"] = values["flags"]
	more["replicas"] = float64(3)
	must(t, c.upgrade(more))
	d, err := c.client.AppsV1().Deployments(namespace).Get(ctx, "berth", metav1.GetOptions{})
	must(t, err)
	if got := ptr.Deref(d.Spec.Replicas, 0); got != 3 {
		t.Errorf("the Deployment has %d replicas after the upgrade, want 3", got)
	}
	if got := leaseHolder(ctx, c); got == "" || got != holder {
		t.Errorf("after an upgrade %q holds the Lease, before it did %q", got, holder)
	}

	// One to other values takes back the rights that these don't need.
	must(t, berth.stop())
	must(t, c.upgrade(map[string]any{"flags": map[string]any{"secure-port": float64(port), "bind-address": "127.0.0.1"}}))
	hasNone(t, c, "berth-simulated", "berth-scaling")
	berth = c.runContainer("berth")
	probed(t, c, port)
	create(t, c, "second")
	eventually(t, "a pod on the node that is there", func(ctx context.Context) bool { return on(ctx, c, "second") != "" })

	must(t, c.uninstall())
	for _, name := range []string{"first", "second"} {
		must(t, c.client.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	}
	must(t, c.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	// A Berth that has lost its Lease and its rights ends, or is ended with its pod.
	_ = berth.stop()
	leavesOnly(t, c, append(before, "configmaps. kube-system/cluster-autoscaler-status", "leases.coordination.k8s.io kube-system/berth"))
}

// TestInstallBesideClusterAutoscaler: a ConfigMap and a Lease that are Cluster Autoscaler's
// don't become the release's, and stay as they are when it goes.
func TestInstallBesideClusterAutoscaler(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	theirs := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler-status"}, Data: map[string]string{"status": "theirs"}}
	_, err := c.client.CoreV1().ConfigMaps(namespace).Create(ctx, theirs, metav1.CreateOptions{})
	must(t, err)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("theirs")}}
	_, err = c.client.CoordinationV1().Leases(namespace).Create(ctx, lease, metav1.CreateOptions{})
	must(t, err)
	values := valuesOf(t, "autoscaler")
	must(t, c.install(values))
	must(t, c.upgrade(values))
	must(t, c.uninstall())
	got, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	if err != nil || got.Data["status"] != "theirs" || len(got.Labels) > 0 {
		t.Errorf("Cluster Autoscaler's ConfigMap is %+v (%v)", got, err)
	}
	left, err := c.client.CoordinationV1().Leases(namespace).Get(ctx, "cluster-autoscaler", metav1.GetOptions{})
	if err != nil || ptr.Deref(left.Spec.HolderIdentity, "") != "theirs" || len(left.Labels) > 0 {
		t.Errorf("Cluster Autoscaler's Lease is %+v (%v)", left, err)
	}
}

// leavesOnly waits until a cluster has no object but those that it had before a release, and
// fails when one has the release's label.
func leavesOnly(t *testing.T, c *cluster, before []string) {
	t.Helper()
	var left []string
	eventually(t, "nothing to be left", func(ctx context.Context) bool {
		after, err := c.objects(ctx, "")
		if err != nil {
			t.Log(err)
			return false
		}
		now := slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) })
		if !slices.Equal(left, now) {
			t.Logf("left are %v", now)
		}
		left = now
		return len(left) == 0
	})
	labelled, err := c.objects(t.Context(), "app.kubernetes.io/instance=berth")
	if err != nil || len(labelled) > 0 {
		t.Errorf("with the release's label are left: %v (%v)", labelled, err)
	}
}

// probed waits until each of the container's probes succeeds.
func probed(t *testing.T, c *cluster, port int) {
	t.Helper()
	d, err := c.client.AppsV1().Deployments(namespace).Get(t.Context(), "berth", metav1.GetOptions{})
	must(t, err)
	of := d.Spec.Template.Spec.Containers[0]
	web := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for _, probe := range []*v1.Probe{of.StartupProbe, of.LivenessProbe, of.ReadinessProbe} {
		get := probe.HTTPGet
		if get.Scheme != v1.URISchemeHTTPS || get.Port.StrVal != of.Ports[0].Name || int(of.Ports[0].ContainerPort) != port {
			t.Fatalf("the probe %+v isn't of port %d", get, port)
		}
		eventually(t, "200 of "+get.Path, func(context.Context) bool {
			r, err := web.Get(fmt.Sprintf("https://127.0.0.1:%d%s", port, get.Path))
			if err != nil {
				return false
			}
			r.Body.Close()
			return r.StatusCode == http.StatusOK
		})
	}
}

func leaseHolder(ctx context.Context, c *cluster) string {
	l, err := c.client.CoordinationV1().Leases(namespace).Get(ctx, "berth", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return ptr.Deref(l.Spec.HolderIdentity, "")
}

// create creates a pod for Berth.
func create(t *testing.T, c *cluster, name string) {
	t.Helper()
	c.createFor(t, "berth", name)
}

// createFor creates a pod for a scheduler.
func (c *cluster) createFor(t *testing.T, scheduler, name string) {
	t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.SchedulerName = scheduler
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}
	_, err := c.client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
}

// on returns the node of a pod.
func on(ctx context.Context, c *cluster, name string) string {
	p, err := c.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return p.Spec.NodeName
}

// roles returns those of some names that there are as ClusterRoles.
func roles(t *testing.T, c *cluster, names ...string) (out []string) {
	t.Helper()
	all, err := c.client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range all.Items {
		if slices.Contains(names, all.Items[i].Name) {
			out = append(out, all.Items[i].Name)
		}
	}
	return out
}

func lacksNone(t *testing.T, c *cluster, names ...string) {
	t.Helper()
	if got := roles(t, c, names...); len(got) != len(names) {
		t.Errorf("of the ClusterRoles %v there are %v", names, got)
	}
}

func hasNone(t *testing.T, c *cluster, names ...string) {
	t.Helper()
	if got := roles(t, c, names...); len(got) > 0 {
		t.Errorf("there are still the ClusterRoles %v", got)
	}
}
