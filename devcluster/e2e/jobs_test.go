package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has what the tests of jobs' controllers share: clusters with a controller, and what they look at.

// workers is a node group whose nodes of 4 CPUs have room for one pod of 3.
func workers(most int) string {
	return fmt.Sprintf(`apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
seed: 1
groups:
- {name: workers, max: %d, launchDelay: {min: 1s, max: 1s}, startup: {min: 1s, max: 1s}, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
`, most)
}

// jobs is a cluster that serves pod groups, with Berth and a controller of jobs.
type jobs struct {
	t       *testing.T
	client  kubernetes.Interface
	objects dynamic.Interface
	port    int // of Berth
	token   string
}

// startJobs starts a cluster of the test's own, on which the definitions and webhooks of the controller may stay.
func startJobs(t *testing.T, j jobController, groups string) *jobs {
	t.Helper()
	log := newAuditLog(t)
	c, client, err := bringUp(t, controlplane.Options{AuditLog: log, PodGroups: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	checkAudit(t, log, 0, nil)
	j.start(t, c)
	k := &jobs{t: t, client: client, port: freePort(t), token: tokenFor(t, client, "reader", "/api/v1alpha1/*", "/debug/status")}
	if k.objects, err = dynamic.NewForConfig(c.Config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.describe)
	startBerth(t, c, append(nodeGroups(t, c, groups), "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(k.port), "--scan-interval=1s")...)
	return k
}

// describe logs what there is, if the test has failed.
func (k *jobs) describe() {
	if !k.t.Failed() {
		return
	}
	ctx, all := context.Background(), metav1.ListOptions{}
	if list, err := k.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, all); err == nil {
		for i := range list.Items {
			p := &list.Items[i]
			k.t.Logf("pod %s: %s on %q; gates %v; group %v; %s", p.Name, p.Status.Phase, p.Spec.NodeName, p.Spec.SchedulingGates, ptr.Deref(p.Spec.SchedulingGroup, v1.PodSchedulingGroup{}).PodGroupName, refusal(p))
		}
	}
	if list, err := k.client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).List(ctx, all); err == nil {
		for i := range list.Items {
			k.t.Logf("group %s: %s: %s", list.Items[i].Name, condition(&list.Items[i]), groupMessage(&list.Items[i]))
		}
	}
	if list, err := k.client.EventsV1().Events(v1.NamespaceDefault).List(ctx, all); err == nil {
		for i := range list.Items {
			k.t.Logf("event %s of %s: %s", list.Items[i].Reason, list.Items[i].Regarding.Name, list.Items[i].Note)
		}
	}
}

// group returns the name of the group of a Job, "" if there is none.
func (k *jobs) group(ctx context.Context, job string) string {
	list, err := k.client.SchedulingV1beta1().PodGroups(v1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range list.Items {
			if o := metav1.GetControllerOf(&list.Items[i]); o != nil && o.Kind == "Job" && o.Name == job {
				return list.Items[i].Name
			}
		}
	}
	return ""
}

// run waits until pods run.
func (k *jobs) run(names ...string) {
	k.t.Helper()
	for _, name := range names {
		eventually(k.t, name+" to run", func(ctx context.Context) bool { return get(ctx, k.client, name).Status.Phase == v1.PodRunning })
	}
}

// running returns how many pods with a label run, -1 if they can't be read.
func (k *jobs) running(ctx context.Context, selector string) int {
	list, err := k.client.CoreV1().Pods(v1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return -1
	}
	n := 0
	for i := range list.Items {
		if list.Items[i].Status.Phase == v1.PodRunning {
			n++
		}
	}
	return n
}

// nodes fails the test unless there are so many nodes, with a pod each.
func (k *jobs) nodes(want int) []v1.Node {
	k.t.Helper()
	list, err := k.client.CoreV1().Nodes().List(k.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	pods, err := api.Pods(k.t.Context(), k.client, "", "spec.nodeName!=")
	if err != nil {
		k.t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range pods {
		used[p.Spec.NodeName] = true
	}
	if len(list.Items) != want || len(used) != want {
		k.t.Errorf("there are %d nodes, %d of them with pods, want %d", len(list.Items), len(used), want)
	}
	return list.Items
}

// says waits until berth explain says all of some words of an object.
func (k *jobs) says(kind, name string, words ...string) {
	k.t.Helper()
	last := ""
	defer func() {
		if k.t.Failed() {
			k.t.Logf("berth explain %s %s says last:\n%s\nwant all of %q", kind, name, last, words)
		}
	}()
	eventually(k.t, fmt.Sprintf("%s %s to be said to be %q", kind, name, words), func(ctx context.Context) bool {
		out, _ := exec.CommandContext(ctx, berth, "explain", "--server", fmt.Sprintf("https://127.0.0.1:%d", k.port), "--token-file", k.token,
			"--insecure-skip-tls-verify", kind, v1.NamespaceDefault+"/"+name).CombinedOutput()
		if ctx.Err() == nil { // it wasn't killed
			last = string(out)
		}
		for _, w := range words {
			if !strings.Contains(last, w) {
				return false
			}
		}
		return true
	})
}

// eventOf waits until there is an event about a pod whose name begins with something.
func (k *jobs) eventOf(prefix, reason string) {
	k.t.Helper()
	eventually(k.t, fmt.Sprintf("an event %s of a pod %s…", reason, prefix), func(ctx context.Context) bool {
		list, err := k.client.EventsV1().Events(v1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return false
		}
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Regarding.Name, prefix) {
				return true
			}
		}
		return false
	})
}
