package checker_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/checker"
)

// TestDropRequests: nothing is left of a resource that claims stand for, whatever the kubelet says that a pod has.
func TestDropRequests(t *testing.T) {
	p := testkit.Pod("p").Req("cpu", "1", "example.com/gpu", "2").Obj()
	requests := p.Spec.Containers[0].Resources.Requests
	p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: p.Spec.Containers[0].Name, AllocatedResources: requests.DeepCopy(), Resources: &v1.ResourceRequirements{Requests: requests.DeepCopy()}}}
	if got := checker.Requests(p)["example.com/gpu"]; got.Value() != 2 {
		t.Fatalf("%s devices are requested before, want 2", got.String())
	}
	checker.DropRequests(p, func(name v1.ResourceName) bool { return name == "example.com/gpu" })
	left := checker.Requests(p)
	if got, there := left["example.com/gpu"]; there || left.Cpu().String() != "1" {
		t.Errorf("%s devices and %s CPUs are requested, want no devices and 1", got.String(), left.Cpu())
	}
}
