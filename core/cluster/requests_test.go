package cluster_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/test/testkit"
)

// nodeHas says what a node has allocated to a container and set up for it.
func nodeHas(container string, allocated, actuated v1.ResourceList) v1.ContainerStatus {
	s := v1.ContainerStatus{Name: container, AllocatedResources: allocated}
	if actuated != nil {
		s.Resources = &v1.ResourceRequirements{Requests: actuated}
	}
	return s
}

// cpus is a list of CPU alone.
func cpus(amount string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(amount)}
}

// TestWhatAPodRequests follows KEP-753 (sidecars), KEP-2837 (requests of the whole
// pod) and KEP-1287 and KEP-5419 (resizes in place), as kube-scheduler does: what filters
// count, and what scoring counts, where a container that requests nothing has
// 100m and 200Mi.
func TestWhatAPodRequests(t *testing.T) {
	const mi = 1 << 20
	whole := podOf(requesting("a", "", ""))
	whole.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}
	overhead := podOf(requesting("a", "1", "64Mi"))
	overhead.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")}
	// The node has allocated more than the spec asks for: a resize is on its way.
	resized := podOf(requesting("a", "1", "64Mi"))
	resized.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "a", AllocatedResources: v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")},
		Resources: &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}}}}
	running := &testkit.PodBuilder{Pod: *resized.DeepCopy()}
	running.On("n")
	// The pod as a whole is resized from 8 CPUs to 1, which its node hasn't carried out.
	lowered := &testkit.PodBuilder{Pod: *whole.DeepCopy()}
	lowered.On("n").Spec.Resources.Requests[v1.ResourceCPU] = resource.MustParse("1")
	lowered.Status.AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("8")}
	lowered.Status.Resources = &v1.ResourceRequirements{Requests: lowered.Status.AllocatedResources}
	infeasible := &testkit.PodBuilder{Pod: *running.DeepCopy()}
	infeasible.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("8")
	infeasible.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Reason: v1.PodReasonInfeasible}}

	for _, c := range []struct {
		name    string
		pod     *testkit.PodBuilder
		request string
		nonZero [2]int64
		scored  [2]int64 // CPU and memory
	}{
		{"all is requested", podOf(requesting("a", "1", "64Mi"), requesting("b", "500m", "32Mi")), "cpu=1500 memory=100663296",
			[2]int64{1500, 96 * mi}, [2]int64{1500, 96 * mi}},
		{"nothing is requested", podOf(requesting("a", "", ""), requesting("b", "", "")), "", [2]int64{200, 400 * mi}, [2]int64{200, 400 * mi}},
		{"one container requests no memory", podOf(requesting("a", "1", "64Mi"), requesting("b", "1", "")), "cpu=2000 memory=67108864",
			[2]int64{2000, 264 * mi}, [2]int64{2000, 264 * mi}},
		{"one container requests no CPU", podOf(requesting("a", "1", "64Mi"), requesting("b", "", "64Mi")), "cpu=1000 memory=134217728",
			[2]int64{1100, 128 * mi}, [2]int64{1100, 128 * mi}},
		{"an init container needs more", withInit(podOf(requesting("a", "1", "64Mi")), requesting("i", "3", "32Mi")), "cpu=3000 memory=67108864",
			[2]int64{3000, 64 * mi}, [2]int64{3000, 64 * mi}},
		{"an init container requests nothing", withInit(podOf(requesting("a", "50m", "64Mi")), requesting("i", "", "")), "cpu=50 memory=67108864",
			[2]int64{100, 200 * mi}, [2]int64{100, 200 * mi}},
		{"a sidecar runs beside", withInit(podOf(requesting("a", "1", "64Mi")), asSidecar(requesting("s", "250m", "64Mi"))), "cpu=1250 memory=134217728",
			[2]int64{1250, 128 * mi}, [2]int64{1250, 128 * mi}},
		{"zero is a request", podOf(requesting("a", "0", "0")), "", [2]int64{0, 0}, [2]int64{0, 0}},
		{"the whole pod requests", whole, "cpu=2000", [2]int64{2000, 200 * mi}, [2]int64{100, 200 * mi}},
		{"overhead", overhead, "cpu=1250 memory=67108864", [2]int64{1250, 64 * mi}, [2]int64{1250, 64 * mi}},
		{"and not before", resized, "cpu=1000 memory=67108864", [2]int64{1000, 64 * mi}, [2]int64{1000, 64 * mi}},
		{"a resize that can't be doesn't count", infeasible, "cpu=3000", [2]int64{3000, 200 * mi}, [2]int64{3000, 200 * mi}},
		{"what a node has allocated for the whole pod counts", lowered, "cpu=8000", [2]int64{8000, 200 * mi}, [2]int64{100, 200 * mi}},
	} {
		for _, v := range compat.Versions() {
			t.Run(c.name+" in "+v.String(), func(t *testing.T) { wantRequests(t, v, c.pod, c.request, c.nonZero, c.scored) })
		}
	}
}

// wantRequests checks what a pod requests and is scored by under a version's rules.
func wantRequests(t *testing.T, v compat.Version, pod *testkit.PodBuilder, request string, nonZero, scored [2]int64) {
	t.Helper()
	p := cluster.SchemaFor(v).ParsePod(pod.Obj())
	if got := p.Request.String(); got != request {
		t.Errorf("it requests %q, want %q", got, request)
	}
	if p.NonZero != nonZero {
		t.Errorf("with defaults it requests %v, want %v", p.NonZero, nonZero)
	}
	if got := [2]int64{p.Scored.At(cluster.CPU), p.Scored.At(cluster.Memory)}; got != scored {
		t.Errorf("it is scored by %v, want %v", got, scored)
	}
}

// TestResizedPodsRequest by container in 1.36, and by pod in 1.37: the greatest of what the spec
// says, what the node has allocated, and what it has set up.
func TestResizedPodsRequest(t *testing.T) {
	const mi = 1 << 20
	on := func(p *testkit.PodBuilder, statuses ...v1.ContainerStatus) *testkit.PodBuilder {
		p.On("n").Status.ContainerStatuses = statuses
		return p
	}
	asWhole := func(p *testkit.PodBuilder, allocated, actuated v1.ResourceList) *testkit.PodBuilder {
		p.Status.AllocatedResources, p.Status.Resources = allocated, &v1.ResourceRequirements{Requests: actuated}
		return p
	}
	requesting8 := func() *testkit.PodBuilder {
		p := on(podOf(requesting("a", "", "")))
		p.Spec.Resources = &v1.ResourceRequirements{Requests: cpus("8")}
		return p
	}
	cantBe := func(p *testkit.PodBuilder) *testkit.PodBuilder {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Reason: v1.PodReasonInfeasible}}
		return p
	}
	initialized := on(withInit(podOf(requesting("a", "1", "64Mi")), requesting("i", "2", "64Mi")))
	initialized.Status.InitContainerStatuses = []v1.ContainerStatus{nodeHas("i", cpus("4"), cpus("4"))}
	two := func() *testkit.PodBuilder { return podOf(requesting("a", "1", "64Mi"), requesting("b", "3", "64Mi")) }
	for _, c := range []struct {
		name            string
		pod             *testkit.PodBuilder
		in36, in37      string
		cpu36, cpu37    int64 // with defaults
		memory36, mem37 int64 // in MiB, with defaults
	}{
		{"what a node has allocated counts", on(podOf(requesting("a", "1", "64Mi")), nodeHas("a", cpus("3"), cpus("2"))), "cpu=3000 memory=67108864", "cpu=3000 memory=67108864", 3000, 3000, 64, 200},
		{"one container grows, one shrinks", on(two(), nodeHas("a", cpus("3"), cpus("3")), nodeHas("b", cpus("1"), cpus("1"))),
			"cpu=6000 memory=134217728", "cpu=4000 memory=134217728", 6000, 4000, 128, 400},
		{"allocated and not set up, one of two", on(two(), nodeHas("a", cpus("3"), nil)), "cpu=4000 memory=134217728", "cpu=6000 memory=134217728", 4000, 6000, 128, 264},
		{"nothing set up of a resource", on(podOf(requesting("a", "50m", "64Mi")), nodeHas("a", nil, v1.ResourceList{})), "cpu=50 memory=67108864", "cpu=50 memory=67108864", 50, 100, 64, 200},
		{"an init container that ends", initialized, "cpu=2000 memory=67108864", "cpu=4000 memory=67108864", 2000, 4000, 64, 200},
		{"it can't be, and nothing is known of the container", cantBe(on(podOf(requesting("a", "1", "64Mi")))), "cpu=1000 memory=67108864", "", 1000, 100, 64, 200},
		{"a whole that requests nothing", asWhole(on(podOf(requesting("a", "1", "64Mi"))), cpus("2"), cpus("4")), "cpu=1000 memory=67108864", "cpu=4000 memory=67108864", 1000, 4000, 64, 64},
		{"a whole that no longer requests memory", asWhole(requesting8(), v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}, cpus("2")),
			"cpu=8000", "cpu=8000 memory=1073741824", 8000, 8000, 200, 1024},
		{"a whole that can't be resized", cantBe(asWhole(requesting8(), cpus("1"), cpus("1"))), "cpu=1000", "cpu=1000", 1000, 1000, 200, 0},
	} {
		for v, want := range map[compat.Version]struct {
			request string
			nonZero [2]int64
		}{compat.V36: {c.in36, [2]int64{c.cpu36, c.memory36 * mi}}, compat.V37: {c.in37, [2]int64{c.cpu37, c.mem37 * mi}}} {
			for _, object := range []*v1.Pod{c.pod.Obj(), cluster.Trim(c.pod.Obj())} {
				p := cluster.SchemaFor(v).ParsePod(object)
				if got := p.Request.String(); got != want.request || p.NonZero != want.nonZero {
					t.Errorf("%s: in %s it requests %q, with defaults %v; want %q, %v", c.name, v, got, p.NonZero, want.request, want.nonZero)
				}
			}
		}
	}
}

// TestRequestsAreAsIn136 has pods on a node with what component-helpers 0.36.3 answers for them, with
// kube-scheduler's defaults and without.
func TestRequestsAreAsIn136(t *testing.T) {
	file, err := os.Open("testdata/requests-1.36.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	defaults := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("200Mi")}
	pods := 0
	for lines := bufio.NewScanner(file); lines.Scan(); pods++ {
		var want struct {
			v1.Pod
			Requests     v1.ResourceList `json:"requests"`
			WithDefaults v1.ResourceList `json:"withDefaults"`
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		s := cluster.SchemaFor(compat.V36)
		if got := cluster.PodRequests(s, &want.Pod, nil); !sameList(got, want.Requests) {
			t.Errorf("pod %d requests %v, want %v:\n%s", pods, got, want.Requests, lines.Text())
		}
		if got := cluster.PodRequests(s, &want.Pod, defaults); !sameList(got, want.WithDefaults) {
			t.Errorf("with defaults pod %d requests %v, want %v:\n%s", pods, got, want.WithDefaults, lines.Text())
		}
	}
	if pods != 60 {
		t.Errorf("there are %d pods, want 60", pods)
	}
}

// sameList reports whether two lists have the same amounts of the same resources.
func sameList(a, b v1.ResourceList) bool {
	for name, q := range a {
		if have, ok := b[name]; !ok || have.Cmp(q) != 0 {
			return false
		}
	}
	return len(a) == len(b)
}

// TestPropertyRequestsAreAsTheLibraryHasThem asks for what random pods request in 1.37, most of
// which have one container.
func TestPropertyRequestsAreAsTheLibraryHasThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(what string) bool { return testkit.Uniform(t, 4, what) == 0 }
		list := func(what string) v1.ResourceList {
			out := v1.ResourceList{}
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "example.com/gpu"} {
				if !some("no " + string(name) + " of " + what) {
					out[name] = resource.MustParse([]string{"0", "100m", "2", "0.0005", "3Gi"}[testkit.Uniform(t, 5, what)])
				}
			}
			return out
		}
		p := podOf()
		for i := range 1 + testkit.Uniform(t, 4, "containers")/3 {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i), Resources: v1.ResourceRequirements{Requests: list("a container")}})
		}
		if some("an init container") {
			p.Spec.InitContainers = []v1.Container{{Name: "i", Resources: v1.ResourceRequirements{Requests: list("it")}}}
		}
		if some("overhead") {
			p.Spec.Overhead = list("overhead")
		}
		if some("the whole pod") {
			p.Spec.Resources = &v1.ResourceRequirements{Requests: list("the whole pod")}
		}
		status := func(c *v1.Container) (out []v1.ContainerStatus) {
			switch testkit.Uniform(t, 5, "status") {
			case 0: // its node has carried out what the spec asks for
				return []v1.ContainerStatus{nodeHas(c.Name, c.Resources.Requests, c.Resources.Requests)}
			case 1:
				return []v1.ContainerStatus{nodeHas(c.Name, list("allocated"), list("actuated"))}
			case 2:
				return []v1.ContainerStatus{nodeHas(c.Name, list("allocated"), nil)}
			case 3:
				return []v1.ContainerStatus{nodeHas(c.Name, nil, list("actuated"))}
			}
			return nil
		}
		for i := range p.Spec.Containers {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status(&p.Spec.Containers[i])...)
		}
		for i := range p.Spec.InitContainers {
			p.Status.InitContainerStatuses = status(&p.Spec.InitContainers[i])
		}
		if some("status of the whole pod, as its only container") {
			requests := p.Spec.Containers[0].Resources.Requests
			p.Status.AllocatedResources, p.Status.Resources = requests, &v1.ResourceRequirements{Requests: requests}
		}
		if some("status of the whole pod") {
			p.Status.AllocatedResources = list("allocated for the whole pod")
			if !some("nothing actuated") {
				p.Status.Resources = &v1.ResourceRequirements{Requests: list("actuated for the whole pod")}
			}
		}
		if some("a resize that waits") {
			reason := []string{v1.PodReasonDeferred, v1.PodReasonInfeasible}[testkit.Uniform(t, 2, "why")]
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Reason: reason}}
		}
		running := testkit.Uniform(t, 2, "running") == 1
		if running {
			p.On("n")
		}
		if !resourcehelper.IsPodLevelRequestsSet(p.Obj()) {
			all := resourcehelper.PodRequests(p.Obj(), resourcehelper.PodResourcesOptions{UseStatusResources: running,
				InPlacePodLevelResourcesVerticalScalingEnabled: running, NonMissingContainerRequests: v1.ResourceList{
					v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("200Mi")}})
			want := [2]int64{all.Cpu().MilliValue(), all.Memory().Value()}
			parsed := cluster.SchemaFor(compat.V37).ParsePod(p.Obj())
			if scored := [2]int64{parsed.Scored.At(cluster.CPU), parsed.Scored.At(cluster.Memory)}; scored != want || parsed.NonZero != want {
				t.Fatalf("the pod is scored by %v, and requests %v with defaults, want %v", scored, parsed.NonZero, want)
			}
		}
		for _, defaults := range []v1.ResourceList{nil, list("default")} {
			got := cluster.PodRequests(cluster.SchemaFor(compat.V37), p.Obj(), defaults)
			want := resourcehelper.PodRequests(p.Obj(), resourcehelper.PodResourcesOptions{UseStatusResources: running,
				InPlacePodLevelResourcesVerticalScalingEnabled: running, NonMissingContainerRequests: defaults})
			if !sameList(got, want) {
				t.Fatalf("with the defaults %v the pod requests %v, want %v", defaults, got, want)
			}
		}
	})
}
