package core_test

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// This file has the commands of the scripts about storage:
//
//	volume NAME zone=ZONE [alone]    with a claim of its name that is bound to it; alone: ReadWriteOncePod

// storageInputs returns the inputs of a command about storage; nil for another command.
func storageInputs(cmd string, args *script.Args) []step.Input {
	if cmd != "volume" {
		return nil
	}
	claim := testkit.Claim(args.Name(), "disks").Bound(args.Name())
	if args.Flag("alone") {
		claim.Modes(v1.ReadWriteOncePod)
	}
	volume := testkit.Volume(args.Name(), "disks").In(v1.LabelTopologyZone, args.Required("zone"))
	return []step.Input{step.ObjectSet{Object: volume.Obj()}, step.ObjectSet{Object: claim.Obj()}}
}

// waitsOnNode adds the volumes that a pod uses, what it tolerates, and the resize that its node can't carry
// out: its kubelet has allocated less, or something else.
func waitsOnNode(args *script.Args, b *testkit.PodBuilder) {
	b.Uses(args.List("uses")...)
	if args.Flag("tolerates-all") {
		b.Toleration(v1.Toleration{Operator: v1.TolerationOpExists})
	}
	reason := args.String("resize", "")
	if reason == "" {
		return
	}
	c := &b.Spec.Containers[0]
	allocated := v1.ResourceList{v1.ResourceCPU: resource.MustParse(args.Quantity("allocated", "1")), v1.ResourceMemory: c.Resources.Requests[v1.ResourceMemory]}
	b.Status.ContainerStatuses = []v1.ContainerStatus{{Name: c.Name, AllocatedResources: allocated, Resources: &v1.ResourceRequirements{Requests: allocated}}}
	b.Status.Conditions = append(b.Status.Conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue,
		Reason: map[string]string{"deferred": v1.PodReasonDeferred, "infeasible": v1.PodReasonInfeasible}[reason]})
}
