package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berthproject/berth/core/plugins"
)

// This file reads whether the pods of a profile preempt others for devices: an entry of pluginConfig
// with a name of Berth's own, as PreemptOrBuy. There is no plugin of the name to enable or disable.

// DevicePreemption is the name of the entry.
const DevicePreemption = "DevicePreemption"

// DevicePreemptionArgs are its arguments.
type DevicePreemptionArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Enabled lets pods preempt others for their devices. Default false, as in kube-scheduler.
	Enabled bool `json:"enabled"`
}

// devicePreemptionArgs reads whether pods preempt for devices.
func devicePreemptionArgs(_ *field.Path, in *DevicePreemptionArgs, out *plugins.Options) field.ErrorList {
	out.DevicePreemption = in.Enabled
	return nil
}
