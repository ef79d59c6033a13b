package core_test

import (
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// This file has the commands of the scripts about devices and pod groups:
//
//	device-class NAME [backs=RESOURCE]
//	device-class-gone NAME
//	pod-group NAME [min=0] [priority=0] [label=LABEL] [parent=NAME] [all]    min=0: of the basic policy; all: its members go together
//	pod-group-gone NAME

// gpu is the extended resource of the argument gpus.
const gpu = "example.com/gpu"

// deviceInput returns the input of a command about devices; nil for another command.
func deviceInput(cmd string, args *script.Args) step.Input {
	switch cmd {
	case "device-class":
		return step.ObjectSet{Object: testkit.DeviceClass(args.Name(), args.String("backs", ""))}
	case "device-class-gone":
		return step.ObjectGone{Kind: cluster.DeviceClassKind, Name: args.Name()}
	case "pod-group":
		g := testkit.PodGroup(args.Name(), args.Int("min", 0), args.String("label", ""))
		g.UID = headroomUID(g.Name)
		if n := int32(args.Int("priority", 0)); n != 0 {
			g.Spec.Priority = &n
		}
		if args.Flag("all") {
			g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		}
		if parent := args.String("parent", ""); parent != "" {
			g.Spec.ParentCompositePodGroupName = &parent
		}
		return step.ObjectSet{Object: g}
	case "pod-group-gone":
		return step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: args.Name()}
	}
	return nil
}

// gpus gives a node the number of GPUs that the arguments name.
func gpus(args *script.Args, b *testkit.NodeBuilder) *testkit.NodeBuilder {
	if n := args.Int("gpus", 0); n > 0 {
		b.Alloc(gpu, fmt.Sprint(n))
	}
	return b
}

// needsOthers has a pod request what the arguments name of GPUs, and makes it a member of a group.
func needsOthers(args *script.Args, b *testkit.PodBuilder) {
	if n := args.Int("gpus", 0); n > 0 {
		b.Req(gpu, fmt.Sprint(n))
	}
	if group := args.String("member", ""); group != "" {
		b.PodGroup(group)
	}
}
