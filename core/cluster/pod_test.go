package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// requesting is a container that requests CPU and memory, "" for nothing.
func requesting(name, cpu, memory string) v1.Container {
	c := v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}
	if cpu != "" {
		c.Resources.Requests[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		c.Resources.Requests[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return c
}

// asSidecar makes an init container run beside the others.
func asSidecar(c v1.Container) v1.Container {
	always := v1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func podOf(containers ...v1.Container) *testkit.PodBuilder {
	p := testkit.Pod("p")
	p.Spec.Containers = containers
	return p
}

func withInit(p *testkit.PodBuilder, containers ...v1.Container) *testkit.PodBuilder {
	p.Spec.InitContainers = containers
	return p
}

// The number of pods that a pod asks for isn't a resource of it.
func TestAPodThatRequestsPods(t *testing.T) {
	s := cluster.NewSchema()
	if p := s.ParsePod(testkit.Pod("p").Req("pods", "3", "cpu", "1").Obj()); p.Request.String() != "cpu=1000" {
		t.Errorf("it requests %s, want cpu=1000", p.Request.String())
	}
}

func TestHostPorts(t *testing.T) {
	port := func(ip string, protocol v1.Protocol, number int32) v1.ContainerPort {
		return v1.ContainerPort{HostIP: ip, Protocol: protocol, HostPort: number}
	}
	with := func(c v1.Container, ports ...v1.ContainerPort) v1.Container {
		c.Ports = ports
		return c
	}
	p := withInit(podOf(
		with(requesting("a", "", ""), port("", "", 80), port("", "", 0), v1.ContainerPort{ContainerPort: 8080}),
		with(requesting("b", "", ""), port("10.0.0.1", v1.ProtocolUDP, 53))),
		with(requesting("i", "", ""), port("", "", 81)),
		with(asSidecar(requesting("s", "", "")), port("", v1.ProtocolTCP, 82)))
	got := fmt.Sprint(cluster.NewSchema().ParsePod(p.Obj()).Ports)
	if want := "[{0.0.0.0 TCP 82} {0.0.0.0 TCP 80} {10.0.0.1 UDP 53}]"; got != want {
		t.Errorf("the pod takes %s, want %s: an init container that ends takes none", got, want)
	}
}

// TestDisks are those of five in-tree plugins, whose volumes count as those of a CSI driver.
func TestDisks(t *testing.T) {
	ebs := func(id string) v1.VolumeSource {
		return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}
	}
	p := testkit.Pod("p").Volume("token", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}).Volume("a", ebs("vol-1")).Volume("unreadable", ebs("aws://zone/disk")).Volume("b", ebs("vol-2"))
	want := []cluster.Disk{{Driver: "ebs.csi.aws.com", Name: "ebs.csi.aws.com/vol-1"}, {Driver: "ebs.csi.aws.com", Name: "ebs.csi.aws.com/vol-2"}}
	if got := cluster.NewSchema().ParsePod(p.Obj()).Disks; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPortsConflict(t *testing.T) {
	port := func(ip string, protocol v1.Protocol, number int32) cluster.HostPort {
		return cluster.HostPort{IP: ip, Protocol: protocol, Port: number}
	}
	for _, c := range []struct {
		name string
		a, b cluster.HostPort
		want bool
	}{
		{"the same", port("10.0.0.1", "TCP", 80), port("10.0.0.1", "TCP", 80), true},
		{"another address", port("10.0.0.1", "TCP", 80), port("10.0.0.2", "TCP", 80), false},
		{"any address", port("0.0.0.0", "TCP", 80), port("10.0.0.2", "TCP", 80), true},
		{"another protocol", port("0.0.0.0", "TCP", 80), port("0.0.0.0", "UDP", 80), false},
		{"another port", port("0.0.0.0", "TCP", 80), port("0.0.0.0", "TCP", 81), false},
	} {
		if got, back := c.a.Conflicts(c.b), c.b.Conflicts(c.a); got != c.want || back != c.want {
			t.Errorf("%s: %v, and the other way round %v; want %v", c.name, got, back, c.want)
		}
	}
}

func TestKindsOfPods(t *testing.T) {
	no := false
	annotated := func(key, value string) *testkit.PodBuilder {
		p := testkit.Pod("p")
		p.Annotations = map[string]string{key: value}
		return p
	}
	uncontrolled := testkit.Pod("p").Owner("apps/v1", "DaemonSet", "d")
	uncontrolled.OwnerReferences[0].Controller = &no
	for _, c := range []struct {
		name           string
		pod            *testkit.PodBuilder
		daemon, mirror bool
	}{
		{"plain", testkit.Pod("p"), false, false},
		{"of a DaemonSet", testkit.Pod("p").Owner("apps/v1", "DaemonSet", "d"), true, false},
		{"owned by a DaemonSet that doesn't control it", uncontrolled, false, false},
		{"of a ReplicaSet", testkit.Pod("p").Owner("apps/v1", "ReplicaSet", "r"), false, false},
		{"to be treated as a DaemonSet's", annotated("cluster-autoscaler.kubernetes.io/daemonset-pod", "true"), true, false},
		{"not to be treated so", annotated("cluster-autoscaler.kubernetes.io/daemonset-pod", "false"), false, false},
		{"static", annotated(v1.MirrorPodAnnotationKey, "hash"), false, true},
	} {
		p := cluster.NewSchema().ParsePod(c.pod.Obj())
		if p.Daemon() != c.daemon || p.Mirror() != c.mirror {
			t.Errorf("%s: daemon %v, mirror %v; want %v, %v", c.name, p.Daemon(), p.Mirror(), c.daemon, c.mirror)
		}
	}
}

func TestAnInstanceIsAnotherPodAlike(t *testing.T) {
	p := cluster.NewSchema().ParsePod(testkit.Pod("p").Namespaced("ns").Req("cpu", "1").Priority(7).Obj())
	q := p.Instance("q")
	if q.Name() != "ns/q" || q.UID != "q" || q.Object.UID != "q" || q.Priority != 7 || q.Request.At(cluster.CPU) != 1000 {
		t.Errorf("the instance is %s %s %+v", q.Name(), q.UID, q)
	}
	if r := q.InstanceWith("r", "uid-r"); r.Name() != "ns/r" || r.UID != "uid-r" || r.Object.UID != "uid-r" || q.UID != "q" {
		t.Errorf("the instance with a UID is %s %s", r.Name(), r.UID)
	}
	if p.Name() != "ns/p" || p.UID != "pod-p" || p.Object.UID != "pod-p" {
		t.Errorf("the pod itself is now %s %s", p.Name(), p.UID)
	}
}

// TestSamePod changes one thing of a pod on a node: do rules see a difference?
func TestSamePod(t *testing.T) {
	pod := func() *testkit.PodBuilder {
		p := testkit.Pod("p").Label("app", "web").Req("cpu", "1", "memory", "1Gi").Owner("apps/v1", "ReplicaSet", "r").On("n")
		p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
		return p
	}
	change := func(do func(p *testkit.PodBuilder)) *testkit.PodBuilder {
		p := pod()
		do(p)
		return p
	}
	for _, c := range []struct {
		name string
		to   *testkit.PodBuilder
		same bool
	}{
		{"nothing", pod(), true},
		{"a label", pod().Label("tier", "front"), false},
		{"an annotation of ours", change(func(p *testkit.PodBuilder) { p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false" }), false},
		{"an annotation of ours comes", change(func(p *testkit.PodBuilder) { p.Annotations["berth.dev/x"] = "" }), false},
		{"an annotation of ours goes", change(func(p *testkit.PodBuilder) { p.Annotations = nil }), false},
		{"one of ours goes and another comes", change(func(p *testkit.PodBuilder) { p.Annotations = map[string]string{"berth.dev/x": "true"} }), false},
		{"an annotation of others", change(func(p *testkit.PodBuilder) { p.Annotations["kubectl.kubernetes.io/restartedAt"] = "now" }), true},
		{"another controller", change(func(p *testkit.PodBuilder) { p.Owner("apps/v1", "DaemonSet", "r") }), false},
		{"no controller", change(func(p *testkit.PodBuilder) { p.OwnerReferences = nil }), false},
		{"another owner beside", change(func(p *testkit.PodBuilder) {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "Node", Name: "n"})
		}), true},
		{"priority", pod().Priority(5), false},
		{"request", pod().Req("cpu", "2"), false},
		{"request of another resource", pod().Req("example.com/gpu", "1"), false},
		{"image", change(func(p *testkit.PodBuilder) { p.Spec.Containers[0].Image = "web:2" }), true},
		{"port", pod().HostPort(80), false},
		{"term of affinity", pod().Apart(v1.LabelHostname, "app", "web"), false},
		{"claim", change(func(p *testkit.PodBuilder) { p.Spec.Volumes = []v1.Volume{claimVolume("c")} }), false},
		{"disk", change(func(p *testkit.PodBuilder) {
			p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "d"}}}}
		}), false},
		{"volume of another kind", change(func(p *testkit.PodBuilder) {
			p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}}}
		}), true},
		{"volume in memory", change(func(p *testkit.PodBuilder) {
			p.Volume("v", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})
		}), true},
		{"local volume", change(func(p *testkit.PodBuilder) { p.Volume("v", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}) }), false},
		{"it terminates", change(func(p *testkit.PodBuilder) { p.DeletionTimestamp = &metav1.Time{} }), false},
		{"the default grace period", change(func(p *testkit.PodBuilder) { p.Spec.TerminationGracePeriodSeconds = new(int64(30)) }), true},
		{"a longer one", change(func(p *testkit.PodBuilder) { p.Spec.TerminationGracePeriodSeconds = new(int64(31)) }), false},
		{"it was created at another time", change(func(p *testkit.PodBuilder) { p.CreationTimestamp = metav1.Unix(5, 0) }), true},
		{"it runs", change(func(p *testkit.PodBuilder) { p.Status.Phase = v1.PodRunning }), true},
		{"it has ended", change(func(p *testkit.PodBuilder) { p.Status.Phase = v1.PodSucceeded }), false},
		{"Karpenter's annotation", change(func(p *testkit.PodBuilder) { p.Annotations[cluster.DoNotDisruptAnnotation] = "true" }), false},
		{"another annotation of Karpenter's", change(func(p *testkit.PodBuilder) { p.Annotations["karpenter.sh/nodepool"] = "true" }), true},
		{"it has started", change(func(p *testkit.PodBuilder) { at := metav1.Unix(5, 0); p.Status.StartTime = &at }), false},
		{"it has been preempted", change(func(p *testkit.PodBuilder) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
		}), false},
		{"it is ready", change(func(p *testkit.PodBuilder) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		}), true},
		{"its containers run with what they requested", change(func(p *testkit.PodBuilder) {
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", Resources: &v1.ResourceRequirements{Requests: p.Spec.Containers[0].Resources.Requests}}}
		}), true},
		{"its containers run with more", change(func(p *testkit.PodBuilder) {
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", Resources: &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}}}}
		}), false},
	} {
		s := cluster.NewSchema()
		from, to := s.ParsePod(pod().Obj()), s.ParsePod(c.to.Obj())
		if got, back := cluster.SamePod(from, to), cluster.SamePod(to, from); got != c.same || back != c.same {
			t.Errorf("%s: the same %v, and the other way round %v; want %v", c.name, got, back, c.same)
		}
	}
	a, b := cluster.NewSchema().ParsePod(pod().Obj()), cluster.NewSchema().ParsePod(pod().Obj())
	if allocs := testing.AllocsPerRun(100, func() { cluster.SamePod(a, b) }); allocs > 0 {
		t.Errorf("comparing pods allocates %v times", allocs)
	}
}

// claimVolume is a volume by a claim.
func claimVolume(claim string) v1.Volume {
	return v1.Volume{Name: claim, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}
