package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
)

// This file reads how a profile scores nodes by their devices: an entry of pluginConfig with a name of
// Berth's own, beside that of DynamicResources, which stays as kube-scheduler has it. There is no plugin
// of the name to enable or disable.

// DeviceScoring is the name of the entry.
const DeviceScoring = "DeviceScoring"

// DeviceScoringArgs are its arguments. docs/devices.md says what they do.
type DeviceScoringArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Strategy is required.
	Strategy dynamicresources.Strategy `json:"strategy"`
}

// deviceScoringArgs reads the strategy, by which the plugin DynamicResources scores.
func deviceScoringArgs(path *field.Path, in *DeviceScoringArgs, out *plugins.Options) (errs field.ErrorList) {
	out.DeviceStrategy = in.Strategy
	if in.Strategy != dynamicresources.LeastFragmentation {
		errs = append(errs, field.NotSupported(path.Child("strategy"), in.Strategy, []dynamicresources.Strategy{dynamicresources.LeastFragmentation}))
	}
	return errs
}

// checkOwn refuses an entry of Berth's own in a profile where it could do nothing.
func checkOwn(path *field.Path, name string, o *plugins.Options) field.ErrorList {
	scoresDevices := slices.ContainsFunc(o.Rules, func(r plugins.Rule) bool { return r.Name == dynamicresources.Name && r.Weight > 0 })
	switch {
	case name == PreemptOrBuy && o.NoPreemption:
		return field.ErrorList{field.Forbidden(path, "no pod of the profile preempts; enable DefaultPreemption at postFilter, or remove this")}
	case name == DeviceScoring && !scoresDevices:
		return field.ErrorList{field.Forbidden(path, "the profile does not score by DynamicResources; enable it at score, or remove this")}
	}
	return nil
}
