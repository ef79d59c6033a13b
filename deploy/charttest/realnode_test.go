package charttest

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// This file installs the chart on nodes whose kubelets are real, as hack/build-node builds them: the image that make image
// has built runs in a container, by the Deployment, and so do the pods that Berth places, preempts and drains. Nothing in
// it stands in for a kubelet but on nodes that Berth buys. The API server serves on loopback, so Berth uses the network
// of its node and is told the address, as a Berth that runs before the cluster's network does.

// realNodes is a cluster with real nodes.
type realNodes struct {
	*cluster
	data string // the dev cluster's folder
	// base are the values that this cluster asks for, whatever Berth is to do.
	base string
	port int // where Berth serves
}

// waits is the image that the dev cluster gives its real nodes: it waits until it is asked to end.
const waits = "localhost/wait:1"

// smallGroups are node groups: a real node is the first's by its label, and the second buys nodes that are simulated.
const smallGroups = `
cloudConfig: |
  apiVersion: berth.dev/v1alpha1
  kind: SimulatedNodeGroups
  groups:
  - {name: real, max: 1, template: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}}
  - {name: pool, max: 2, template: {allocatable: {cpu: "64", memory: 64Gi, pods: "10"}}}
flags: {cloud-provider: simulated, scan-interval: 1s, scale-down-unneeded-time: 3s, scale-down-delay-after-add: 0s, scale-down-delay-after-failure: 1s, node-delete-delay-after-taint: 1s}
`

// startRealNodes starts the cluster. Berth's pods go to the node real-a.
func startRealNodes(t *testing.T) *realNodes {
	t.Helper()
	i := imageOf(t)
	r := &realNodes{data: filepath.Join(t.TempDir(), "cluster"), port: freePort(t)}
	r.cluster = startCluster(t, "--data-dir", r.data, "--real-node", "real-a,real-b,real-c", "--real-node-image", i.archive)
	t.Cleanup(func() {
		if t.Failed() {
			r.tell()
		}
	})
	server, err := url.Parse(r.config.Host)
	must(t, err)
	r.base = fmt.Sprintf(`
image: {repository: %q, tag: %q, pullPolicy: Never}
replicas: 1
hostNetwork: true
nodeSelector: {kubernetes.io/hostname: real-a}
extraEnv: [{name: KUBERNETES_SERVICE_HOST, value: %q}, {name: KUBERNETES_SERVICE_PORT, value: %q}]
flags: {secure-port: %d}
`, i.name, imageTag, server.Hostname(), server.Port(), r.port)
	for name, value := range map[string]int32{"high": 1000, "low": 10} {
		_, err := r.client.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		must(t, err)
	}
	return r
}

// tell logs what the cluster says of its pods, and how Berth's log ends.
func (r *realNodes) tell() {
	ctx := context.Background() // the test's is over
	if pods, err := r.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); err == nil {
		for _, p := range pods.Items {
			r.t.Logf("pod %s/%s of %s on %q: %s %+v %+v", p.Namespace, p.Name, p.Spec.SchedulerName, p.Spec.NodeName, p.Status.Phase, p.Status.Conditions, p.Status.ContainerStatuses)
		}
	}
	if events, err := r.client.CoreV1().Events("").List(ctx, metav1.ListOptions{}); err == nil {
		for _, e := range events.Items {
			r.t.Logf("event of %s: %s %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	logs, _ := filepath.Glob(filepath.Join(r.data, "node-*", "logs", namespace+"_berth*", "*", "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		r.t.Logf("%s ends with\n%s", path, text[max(0, len(text)-4000):])
	}
}

// with returns the values of this cluster with more, whose flags are added.
func (r *realNodes) with(more ...string) map[string]any {
	r.t.Helper()
	out, flags := map[string]any{}, map[string]any{}
	for _, text := range append([]string{r.base}, more...) {
		v := map[string]any{}
		must(r.t, yaml.UnmarshalStrict([]byte(text), &v))
		maps.Copy(out, v)
		if f, ok := v["flags"].(map[string]any); ok {
			maps.Copy(flags, f)
		}
	}
	out["flags"] = flags
	return out
}

// runsBerth installs the chart, and returns when its Deployment is available: the kubelet's probes have succeeded.
func (r *realNodes) runsBerth(values map[string]any) {
	r.t.Helper()
	began := time.Now()
	must(r.t, r.install(values))
	eventually(r.t, "the Deployment to be available", func(ctx context.Context) bool {
		d, err := r.client.AppsV1().Deployments(namespace).Get(ctx, "berth", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 1
	})
	r.t.Logf("Berth's pod was available %s after helm install", time.Since(began).Round(100*time.Millisecond))
}

// removeBerth uninstalls the chart, and returns when Berth's container has ended.
func (r *realNodes) removeBerth() {
	r.t.Helper()
	must(r.t, r.uninstall())
	eventually(r.t, "Berth's pod to end", func(ctx context.Context) bool {
		list, err := r.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=berth"})
		return err == nil && len(list.Items) == 0
	})
}

// asks returns a pod that waits, and asks for a percentage of a node's cores. With a node it goes there alone.
func (r *realNodes) asks(scheduler, priority string, percent int64, node string) v1.PodSpec {
	r.t.Helper()
	n, err := r.client.CoreV1().Nodes().Get(r.t.Context(), "real-a", metav1.GetOptions{})
	must(r.t, err)
	cpu := resource.NewMilliQuantity(n.Status.Allocatable.Cpu().MilliValue()*percent/100, resource.DecimalSI)
	s := v1.PodSpec{SchedulerName: scheduler, PriorityClassName: priority, TerminationGracePeriodSeconds: ptr.To[int64](10), AutomountServiceAccountToken: ptr.To(false)}
	s.Containers = []v1.Container{{Name: "waits", Image: waits, ImagePullPolicy: v1.PullNever, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *cpu}}}}
	if node != "" {
		s.NodeSelector = map[string]string{v1.LabelHostname: node}
	}
	return s
}

// put creates a pod.
func (r *realNodes) put(name string, spec v1.PodSpec) {
	r.t.Helper()
	_, err := r.client.CoreV1().Pods("default").Create(r.t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	must(r.t, err)
}

// drop deletes a pod, and returns when it is gone.
func (r *realNodes) drop(name string) {
	r.t.Helper()
	must(r.t, r.client.CoreV1().Pods("default").Delete(r.t.Context(), name, metav1.DeleteOptions{}))
	eventually(r.t, "pod "+name+" to be gone", func(ctx context.Context) bool {
		_, err := r.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// runs waits until the container of a pod runs, by containerd's word, and returns its ID and node.
func (r *realNodes) runs(name string) (id, node string) {
	r.t.Helper()
	eventually(r.t, "the container of "+name+" to run", func(ctx context.Context) bool {
		p, err := r.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || p.Status.Phase != v1.PodRunning || len(p.Status.ContainerStatuses) == 0 {
			return false
		}
		id, node = strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://"), p.Spec.NodeName
		return r.hasTask(node, id)
	})
	return id, node
}

// hasTask reports whether containerd of a node runs a container.
func (r *realNodes) hasTask(node, id string) bool {
	out, err := r.ctr(node, "tasks", "ls")
	return err == nil && slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) == 3 && f[0] == id && f[2] == "RUNNING"
	})
}

// ctr runs containerd's own client on a node.
func (r *realNodes) ctr(node string, args ...string) (string, error) {
	ctr := filepath.Join(filepath.Dir(devcluster), "node", "ctr")
	out, err := exec.Command(ctr, append([]string{"--address", filepath.Join(r.data, "node-"+node, "containerd.sock"), "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ctr %v on %s: %w: %s", args, node, err, out)
	}
	return string(out), nil
}

// mark patches the labels and annotations of a node.
func (r *realNodes) mark(node, patch string) {
	r.t.Helper()
	_, err := r.client.CoreV1().Nodes().Patch(r.t.Context(), node, types.MergePatchType, []byte(`{"metadata": `+patch+`}`), metav1.PatchOptions{})
	must(r.t, err)
}

// leads waits until a Lease is held by a holder of that kind.
func (r *realNodes) leads(lease, what string, is func(holder string) bool) {
	r.t.Helper()
	eventually(r.t, what+" to hold the Lease "+lease, func(ctx context.Context) bool {
		l, err := r.client.CoordinationV1().Leases(namespace).Get(ctx, lease, metav1.GetOptions{})
		return err == nil && ptr.Deref(l.Spec.HolderIdentity, "") != "" && is(*l.Spec.HolderIdentity)
	})
}

// isBerths reports whether a Lease's holder is a pod of the Deployment. With its node's network a pod has the node's hostname.
func isBerths(holder string) bool { return strings.HasPrefix(holder, "berth-") }

// TestOnRealNodes installs the chart beside kube-scheduler on nodes with real kubelets, as it comes, with a provider in the
// pod, as a shadow, in place of kube-scheduler and in place of Cluster Autoscaler, one after the other.
func TestOnRealNodes(t *testing.T) {
	r := startRealNodes(t)
	stop := r.startScheduler("--leader-elect=true")
	r.leads("kube-scheduler", "kube-scheduler", func(string) bool { return true })
	r.quickstart(t)
	r.withAProvider(t)
	r.asAShadow(t)
	stop = r.inPlaceOfTheScheduler(t, stop)
	defer stop()
	r.inPlaceOfTheAutoscaler(t)
}

// quickstart does what docs/install.md says from helm install on: helm test asks the leader for its status, the first of the
// quickstart's pods is placed within a minute of helm install, the containers of all that fit run, and of the one that
// doesn't kubectl berth says why.
func (r *realNodes) quickstart(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for _, node := range []string{"real-a", "real-b", "real-c"} { // where nothing can be pulled from
		_, err := r.ctr(node, "images", "tag", waits, "registry.k8s.io/pause:3.10")
		must(t, err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "..", "examples", "quickstart", "pods.yaml"))
	must(t, err)
	began := time.Now()
	must(t, r.install(r.with()))
	for _, o := range parse(t, raw) {
		must(t, r.createWith(o, metav1.CreateOptions{}))
	}
	placed := func(ctx context.Context) (names []string) {
		list, err := r.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		for _, p := range list.Items {
			if p.Spec.NodeName != "" {
				names = append(names, p.Name)
			}
		}
		return names
	}
	eventually(t, "the first pod to be placed", func(ctx context.Context) bool { return len(placed(ctx)) > 0 })
	took := time.Since(began)
	t.Logf("from helm install to the first pod placed: %s", took.Round(100*time.Millisecond))
	if took > time.Minute {
		t.Errorf("the first pod was placed %s after helm install, want a minute at most", took)
	}
	eventually(t, "three pods to be placed", func(ctx context.Context) bool { return len(placed(ctx)) == 3 })
	for _, name := range placed(ctx) {
		r.runs(name)
	}
	r.leads("berth", "Berth's pod", isBerths)
	h := action.NewReleaseTesting(r.helm)
	h.Namespace, h.Timeout = namespace, time.Minute
	_, shutdown, err := h.Run("berth")
	if err != nil {
		t.Errorf("helm test: %v", err)
	}
	if shutdown != nil {
		must(t, shutdown())
	}
	said, err := exec.CommandContext(ctx, filepath.Join(imageOf(t).root, entrypoint), "explain", "pod", "quickstart-huge", "--kubeconfig", r.path).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "Insufficient cpu") {
		t.Errorf("of the pod that fits nowhere berth explain says (%v)\n%s", err, said)
	}
	must(t, r.client.AppsV1().Deployments("default").Delete(ctx, "quickstart", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
	r.drop("quickstart-huge")
	eventually(t, "the pods to be gone", func(ctx context.Context) bool { return len(placed(ctx)) == 0 })
	r.removeBerth()
}

// asAShadow: kube-scheduler places a pod, whose container runs, and the shadow compares.
func (r *realNodes) asAShadow(t *testing.T) {
	t.Helper()
	r.runsBerth(r.with("shadow: {enabled: true}"))
	r.put("shadowed", r.asks("default-scheduler", "", 10, ""))
	r.runs("shadowed")
	eventually(t, "the shadow to have compared the pod", func(context.Context) bool {
		n := 0
		for _, verdict := range []string{"same", "equal", "better", "worse"} {
			n += r.shadowed(t, r.port, verdict)
		}
		return n > 0
	})
	r.drop("shadowed")
	r.removeBerth()
}

// inPlaceOfTheScheduler: Berth waits for the Lease and takes over when kube-scheduler ends. It stops a container for a pod of
// higher priority, and drains a node whose pod then runs on another. kube-scheduler is back afterwards, until stop.
func (r *realNodes) inPlaceOfTheScheduler(t *testing.T, stopScheduler func()) (stop func()) {
	t.Helper()
	r.mark("real-b", `{"labels": {"berth.dev/node-group": "real"}, "annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}`)
	r.runsBerth(r.with(smallGroups, "schedulerConfiguration: {profiles: [{schedulerName: default-scheduler}], leaderElection: {resourceName: kube-scheduler}}"))
	stopScheduler()
	r.leads("kube-scheduler", "Berth's pod", isBerths)

	r.put("victim", r.asks("default-scheduler", "low", 60, "real-b"))
	victim, _ := r.runs("victim")
	r.put("urgent", r.asks("default-scheduler", "high", 90, "real-b"))
	r.runs("urgent")
	if r.hasTask("real-b", victim) {
		t.Error("the victim's container still runs")
	}
	r.drop("urgent")
	r.drains(t, "real-b")

	stop = r.startScheduler("--leader-elect=true")
	r.removeBerth()
	r.leads("kube-scheduler", "kube-scheduler", func(holder string) bool { return !isBerths(holder) })
	r.put("after", r.asks("default-scheduler", "", 10, ""))
	r.runs("after")
	r.drop("after")
	return stop
}

// inPlaceOfTheAutoscaler: Berth buys a node for a pod that fits on none, drains a real one, and kube-scheduler places
// the pods.
func (r *realNodes) inPlaceOfTheAutoscaler(t *testing.T) {
	t.Helper()
	r.mark("real-c", `{"labels": {"berth.dev/node-group": "real"}, "annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}`)
	r.runsBerth(r.with(smallGroups, "schedulerConfiguration: {profiles: [{schedulerName: default-scheduler}]}", "flags: {mode: autoscaler}"))
	r.leads("cluster-autoscaler", "Berth's pod", isBerths)
	r.put("large", r.asks("default-scheduler", "", 150, ""))
	eventually(t, "the pod that fits on no node to run on one that was bought", func(ctx context.Context) bool {
		p, err := r.client.CoreV1().Pods("default").Get(ctx, "large", metav1.GetOptions{})
		return err == nil && p.Status.Phase == v1.PodRunning && strings.HasPrefix(p.Spec.NodeName, "pool-")
	})
	r.drains(t, "real-c")
	r.removeBerth()
}

// drains has a service run on a node that only it needs, and lets the node go: Berth has its container stopped, the replacement
// runs on another real node, and the node's object goes.
func (r *realNodes) drains(t *testing.T, node string) {
	t.Helper()
	ctx := t.Context()
	spec := r.asks("default-scheduler", "", 10, "")
	hostname := func(operator v1.NodeSelectorOperator, names ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: operator, Values: names}}}
	}
	spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{hostname(v1.NodeSelectorOpIn, "real-a", node)}},
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 100, Preference: hostname(v1.NodeSelectorOpIn, node)}}}}
	labels := map[string]string{"app": "on-" + node}
	_, err := r.client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "on-" + node}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}, metav1.CreateOptions{})
	must(t, err)
	first := r.podOfService("on-"+node, "")
	id, at := r.runs(first)
	if at != node {
		t.Fatalf("the service's pod is on %s, want %s", at, node)
	}
	r.mark(node, `{"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": null}}`)
	second := r.podOfService("on-"+node, first)
	if _, at := r.runs(second); at != "real-a" {
		t.Errorf("the replacement runs on %s, want real-a", at)
	}
	if r.hasTask(node, id) {
		t.Error("the container on the drained node still runs")
	}
	eventually(t, "the drained node to go", func(ctx context.Context) bool {
		_, err := r.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	must(t, r.client.AppsV1().Deployments("default").Delete(ctx, "on-"+node, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
}

// podOfService waits for a pod of a Deployment that isn't another, and returns its name.
func (r *realNodes) podOfService(app, not string) (name string) {
	r.t.Helper()
	eventually(r.t, "a pod of "+app, func(ctx context.Context) bool {
		list, err := r.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return false
		}
		for _, p := range list.Items {
			if p.Name != not && p.DeletionTimestamp == nil {
				name = p.Name
			}
		}
		return name != ""
	})
	return name
}
