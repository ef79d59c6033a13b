package core_test

import (
	v1 "k8s.io/api/core/v1"

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
