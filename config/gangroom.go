package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
)

// This file reads when room is kept for gangs of a profile that wait: an entry of pluginConfig with a name
// of Berth's own, beside that of GangScheduling, which has no arguments in kube-scheduler. There is no
// plugin of the name to enable or disable. Without the entry none is kept, as in kube-scheduler.

// GangRoom is the name of the entry.
const GangRoom = "GangRoom"

// GangRoomArgs are its arguments. docs/pod-groups.md says what they do.
type GangRoomArgs struct {
	metav1.TypeMeta `json:",inline"`

	// After is how long a gang waits before room is kept for it, 1s or more. It is required.
	After metav1.Duration `json:"after"`
	// For is how long room is kept for a gang that doesn't start, 1s or more. The default value is 1h.
	For *metav1.Duration `json:"for"`
}

func gangRoomArgs(path *field.Path, in *GangRoomArgs, out *plugins.Options) (errs field.ErrorList) {
	out.KeepRoom = framework.KeepRoom{After: in.After.Duration, For: time.Hour}
	if in.For != nil {
		out.KeepRoom.For = in.For.Duration
	}
	if out.KeepRoom.After < time.Second {
		errs = append(errs, field.Invalid(path.Child("after"), in.After.Duration.String(), "must be 1s or more; remove the entry to keep no room"))
	}
	if out.KeepRoom.For < time.Second {
		errs = append(errs, field.Invalid(path.Child("for"), out.KeepRoom.For.String(), "must be 1s or more"))
	}
	return errs
}
