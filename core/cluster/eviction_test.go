package cluster_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAnnotationsThatAreNoBooleans says nothing of a pod or node by a value that it doesn't
// know, and reports it.
func TestAnnotationsThatAreNoBooleans(t *testing.T) {
	s := cluster.NewSchema()
	for _, x := range []struct{ key, value, want string }{
		{cluster.SafeToEvictAnnotation, "true", "[]"},
		{cluster.SafeToEvictAnnotation, "on-completion", "[]"},
		{cluster.SafeToEvictAnnotation, "True", `[metadata.annotations[cluster-autoscaler.kubernetes.io/safe-to-evict] is "True", treated as unset]`},
		{cluster.DoNotDisruptAnnotation, "false", "[]"},
		{cluster.DoNotDisruptAnnotation, "1h", `[metadata.annotations[karpenter.sh/do-not-disrupt] is "1h", treated as unset]`},
		{cluster.SurgeAnnotation, "false", "[]"},
		{cluster.SurgeAnnotation, "1", `[metadata.annotations[berth.dev/surge] is "1", treated as unset]`},
		{cluster.DaemonPodAnnotation, "yes", `[metadata.annotations[cluster-autoscaler.kubernetes.io/daemonset-pod] is "yes", treated as unset]`},
	} {
		p := s.ParsePod(testkit.Pod("p").Annotate(x.key, x.value).Obj())
		if got := fmt.Sprint(p.Problems); got != x.want {
			t.Errorf("%s=%s: problems %s, want %s", x.key, x.value, got, x.want)
		}
		if len(p.Problems) > 0 && (p.Eviction.Safe != cluster.SafeUnsaid || p.Eviction.DoNotDisrupt || p.OfNode || p.WantsSurge()) {
			t.Errorf("%s=%s says something: %+v, of its node %t", x.key, x.value, p.Eviction, p.OfNode)
		}
	}
	for _, x := range []struct{ key, value, want string }{
		{cluster.ScaleDownDisabledAnnotation, "false", "[]"},
		{cluster.ScaleDownDisabledAnnotation, "", `[metadata.annotations[cluster-autoscaler.kubernetes.io/scale-down-disabled] is "", treated as unset]`},
		{cluster.DoNotDisruptAnnotation, "on", `[metadata.annotations[karpenter.sh/do-not-disrupt] is "on", treated as unset]`},
	} {
		n := testkit.Node("n").Obj()
		n.Annotations = map[string]string{x.key: x.value}
		if got := fmt.Sprint(s.ParseNode(n, "").Problems); got != x.want {
			t.Errorf("a node with %s=%s: problems %s, want %s", x.key, x.value, got, x.want)
		}
	}
}

// TestWhatIsKeptOfLocalVolumes keeps of a pod's local volumes the first that its annotation
// doesn't let go, by its name, and no path.
func TestWhatIsKeptOfLocalVolumes(t *testing.T) {
	disk := v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
	host := v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/secret"}}
	for _, x := range []struct {
		name string
		pod  *testkit.PodBuilder
		want string
	}{
		{"none", testkit.Pod("p"), "[]"},
		{"the first", testkit.Pod("p").Volume("a", host).Volume("b", disk), "[a]"},
		{"the first that isn't let go", testkit.Pod("p").Volume("a", disk).Volume("b", host).Annotate(cluster.LocalVolumesAnnotation, "a"), "[b]"},
		{"all are let go", testkit.Pod("p").Volume("a", disk).Annotate(cluster.LocalVolumesAnnotation, "a"), "[]"},
		{"one in memory", testkit.Pod("p").Volume("a", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}), "[]"},
	} {
		got := []string{}
		for _, v := range cluster.Trim(x.pod.Obj()).Spec.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s: a path is kept: %+v", x.name, v.HostPath)
			}
			got = append(got, v.Name)
		}
		if fmt.Sprint(got) != x.want {
			t.Errorf("%s: kept %v, want %s", x.name, got, x.want)
		}
	}
}
