package drainability_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// ruleOf says by which rule a pod is drainable or not, read from the whole object, in one
// go: what Context.Judge says of its trimmed copy.
func ruleOf(s *cluster.State, flags *autoscaler.RemovalRules, p *v1.Pod) string {
	owner := metav1.GetControllerOf(p)
	daemon := owner != nil && owner.Kind == "DaemonSet" || p.Annotations["cluster-autoscaler.kubernetes.io/daemonset-pod"] == "true"
	safe := p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"]
	ended := p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded
	if _, mirror := p.Annotations["kubernetes.io/config.mirror"]; mirror {
		return "Mirror"
	}
	if at := p.DeletionTimestamp; at != nil {
		grace := 30 * time.Second
		if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = time.Duration(*g) * time.Second
		}
		if now.Sub(at.Time) > grace+30*time.Second {
			return "LongTerminating"
		}
	}
	if flags.SkipCustomControllerPods && owner != nil && vanishedOrSmall(s, flags, p.Namespace, owner, daemon) {
		return "ReplicaCount"
	}
	switch {
	case p.Annotations["karpenter.sh/do-not-disrupt"] == "true" && p.DeletionTimestamp == nil && !ended:
		return "DoNotDisrupt"
	case daemon:
		return "DaemonSet"
	case safe == "true":
		return "SafeToEvict"
	case ended:
		return "Terminal"
	case safe == "on-completion":
		return "OnCompletion"
	case p.Spec.SchedulingGroup != nil && p.Spec.SchedulingGroup.PodGroupName != nil && *p.Spec.SchedulingGroup.PodGroupName != "":
		return "PodGroup"
	case owner == nil, flags.SkipCustomControllerPods && !slices.Contains([]string{"ReplicationController", "Job", "ReplicaSet", "StatefulSet"}, owner.Kind):
		return "Replicated"
	case flags.SkipSystemPods && p.Namespace == "kube-system":
		return "System" // there are no budgets
	case safe == "false":
		return "NotSafeToEvict"
	}
	let := strings.Split(p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"], ",")
	for _, v := range p.Spec.Volumes {
		local := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != "Memory"
		if flags.SkipLocalStorage && local && v.Name != "" && !slices.Contains(let, v.Name) {
			return "LocalStorage"
		}
	}
	return ""
}

// vanishedOrSmall reports whether a controller should exist and doesn't, or wants too few pods.
func vanishedOrSmall(s *cluster.State, flags *autoscaler.RemovalRules, ns string, owner *metav1.OwnerReference, daemon bool) bool {
	if strings.Count(owner.APIVersion, "/") > 1 {
		return false
	}
	apps := strings.HasPrefix(owner.APIVersion, "apps/")
	counted := owner.Kind == "ReplicationController" || owner.Kind == "ReplicaSet" && !daemon
	known := counted || daemon && owner.Kind == "DaemonSet" && apps || !daemon && (owner.Kind == "Job" || owner.Kind == "StatefulSet" && apps)
	if !known {
		return false
	}
	w := s.Workload(cluster.WorkloadKind(owner.Kind), ns, owner.Name)
	return w == nil || counted && int(w.Replicas.Wanted) < flags.MinReplicas
}

func TestPropertyRulesAreAskedInOrder(t *testing.T) {
	s := state()
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // so that each rule gets its turn
			ruleIsAsked(t, s, seen)
		}
	})
	if len(seen) < 12 && !t.Failed() {
		t.Errorf("only %d of the 13 answers were given: %v", len(seen), seen)
	}
}

func ruleIsAsked(t *rapid.T, s *cluster.State, seen map[string]int) {
	p := randomPod(t)
	maybe := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) > 0 }
	flags := autoscaler.RemovalRules{SkipSystemPods: maybe("system"), SkipLocalStorage: maybe("local"), SkipCustomControllerPods: maybe("custom"),
		SystemPodTimeout: time.Hour, MinReplicas: rapid.IntRange(1, 3).Draw(t, "replicas")}
	c := drainability.Context{Rules: &flags, State: s, Now: now}
	got, want := c.Judge(s.Schema.ParsePod(cluster.Trim(p))), ruleOf(s, &flags, p)
	if seen[want]++; got.Rule != want {
		t.Fatalf("it says %+v of the pod, want the rule %q\n%+v", got, want, p)
	}
	if stays := got.Outcome == drainability.Block || got.Outcome == drainability.WaitFor; stays != (got.Why != "") {
		t.Fatalf("%+v: a reason, and only one, for a pod that stays", got)
	}
}

// randomPod draws a pod that any rule may have something to say about.
func randomPod(t *rapid.T) *v1.Pod {
	one := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	b := testkit.Pod("p").Namespaced(one("namespace", "default", "default", "kube-system"))
	if kind := one("kind", "", "ReplicaSet", "ReplicaSet", "StatefulSet", "ReplicationController", "Job", "DaemonSet", "Widget"); kind != "" {
		b.Owner(one("api", "apps/v1", "apps/v1", "batch/v1", "v1", "a/b/c"), kind, one("owner", "web", "web", "web", "gone"))
	}
	for _, key := range []string{cluster.SafeToEvictAnnotation, cluster.DoNotDisruptAnnotation, cluster.DaemonPodAnnotation, v1.MirrorPodAnnotationKey, cluster.LocalVolumesAnnotation} {
		if rapid.IntRange(0, 5).Draw(t, key) == 0 {
			b.Annotate(key, one("value", "true", "false", "on-completion", "v0", "v0,v1", ""))
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "volumes") {
		source := v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMedium(one("medium", "", "Memory"))}}
		if rapid.Bool().Draw(t, "host") {
			source = v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}
		}
		b.Volume(fmt.Sprint("v", i), source)
	}
	if rapid.IntRange(0, 4).Draw(t, "terminates") == 0 {
		b.DeletionTimestamp = new(at(time.Duration(rapid.IntRange(0, 120).Draw(t, "ago")) * time.Second))
		if rapid.Bool().Draw(t, "grace") {
			b.Spec.TerminationGracePeriodSeconds = new(int64(rapid.IntRange(0, 60).Draw(t, "seconds")))
		}
	}
	b.Status.Phase = v1.PodPhase(one("phase", "Pending", "Running", "Running", "Running", "Failed", "Succeeded"))
	return b.Obj()
}
