package config

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/weighing"
)

// This file reads what a profile sets for its pods that could preempt: an entry of
// pluginConfig with a name of Berth's own, beside that of DefaultPreemption, which stays as
// kube-scheduler has it. There is no plugin of the name to enable or disable.

// PreemptOrBuy is the name of the entry.
const PreemptOrBuy = "PreemptOrBuy"

// PreemptOrBuyArgs are its arguments. Those left out have the defaults of weighing.Default.
// docs/preempt-wait-buy.md says what each does.
type PreemptOrBuyArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Policy is preempt-first, buy-first or cheapest (weighing.Policies).
	Policy *weighing.Policy `json:"policy"`
	// MaxWait is how long a pod waits for a node instead of preempting, above 0.
	MaxWait *metav1.Duration `json:"maxWait"`
	// LaunchTimes is for how many median launches of the group a pod waits, from 1 to 1000. It ends
	// with this or with MaxWait, whichever is over first.
	LaunchTimes *float64 `json:"launchTimes"`
	// Costs are what the policy cheapest compares; nil for the defaults of all of them.
	Costs *PreemptOrBuyCosts `json:"costs"`
}

// PreemptOrBuyCosts are the weights of weighing.Costs, each from 0 to a million.
type PreemptOrBuyCosts struct {
	// PerVictim is for each pod that is preempted, MaxLostHours bounds the hours of its work that are lost,
	// and PriorityWeight makes the loss of important pods dearer.
	PerVictim      *float64 `json:"perVictim"`
	MaxLostHours   *float64 `json:"maxLostHours"`
	PriorityWeight *float64 `json:"priorityWeight"`
	// NodeHours are for how long a new node is paid, WaitWeight is for an hour of waiting.
	NodeHours  *float64 `json:"nodeHours"`
	WaitWeight *float64 `json:"waitWeight"`
}

// preemptOrBuyArgs reads the policy of a profile's pods that could preempt.
func preemptOrBuyArgs(path *field.Path, in *PreemptOrBuyArgs, out *plugins.Options) (errs field.ErrorList) {
	w := weighing.Default()
	out.Weighing = &w
	w.Policy = ptr.Deref(in.Policy, w.Policy)
	if !slices.Contains(weighing.Policies(), w.Policy) {
		errs = append(errs, field.NotSupported(path.Child("policy"), w.Policy, weighing.Policies()))
	}
	if in.MaxWait != nil {
		if w.MaxWait = in.MaxWait.Duration; w.MaxWait <= 0 {
			errs = append(errs, field.Invalid(path.Child("maxWait"), in.MaxWait.Duration.String(), "must be greater than 0; with preempt-first pods do not wait"))
		}
	}
	if in.LaunchTimes != nil {
		if w.LaunchTimes = *in.LaunchTimes; !(w.LaunchTimes >= 1 && w.LaunchTimes <= 1000) {
			errs = append(errs, field.Invalid(path.Child("launchTimes"), w.LaunchTimes, "must be from 1 to 1000: half of all nodes take longer than one median launch"))
		}
	}
	costs := ptr.Deref(in.Costs, PreemptOrBuyCosts{})
	for _, x := range []struct {
		name string
		in   *float64
		out  *float64
	}{
		{"perVictim", costs.PerVictim, &w.Costs.PerVictim},
		{"maxLostHours", costs.MaxLostHours, &w.Costs.MaxLostHours},
		{"priorityWeight", costs.PriorityWeight, &w.Costs.PriorityWeight},
		{"nodeHours", costs.NodeHours, &w.Costs.NodeHours},
		{"waitWeight", costs.WaitWeight, &w.Costs.WaitWeight},
	} {
		if x.in == nil {
			continue
		}
		const limit = 1e6
		if *x.out = *x.in; !(*x.in >= 0 && *x.in <= limit) {
			errs = append(errs, field.Invalid(path.Child("costs", x.name), *x.in, fmt.Sprintf("must be from 0 to %.0f", limit)))
		}
	}
	return errs
}
