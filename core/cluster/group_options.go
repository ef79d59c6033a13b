package cluster

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupOptions are what a provider says about one node group in place of the autoscaler's flags of
// the same names (NodeGroupAutoscalingOptions of Cluster Autoscaler's externalgrpc
// protocol). A field that is nil leaves the flag's value.
type GroupOptions struct {
	UtilizationThreshold    *float64         `json:"scaleDownUtilizationThreshold,omitempty"`
	GPUUtilizationThreshold *float64         `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	UnneededTime            *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	UnreadyTime             *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// ProvisionTime is how long an instance may take to become a node.
	ProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
	// StartupTime is how long after its creation a node that isn't usable counts as coming.
	StartupTime                 *metav1.Duration `json:"maxNodeStartupTime,omitempty"`
	IgnoreDaemonSetsUtilization *bool            `json:"ignoreDaemonSetsUtilization,omitempty"`
	// ZeroOrMax says that the group's nodes are removed all together or not at all.
	ZeroOrMax bool `json:"zeroOrMaxNodeScaling,omitempty"`
}

// Validate names the first option that can't be honoured. o may be nil.
func (o *GroupOptions) Validate() error {
	if o == nil {
		return nil
	}
	for _, x := range []struct {
		name  string
		value *float64
	}{{"scaleDownUtilizationThreshold", o.UtilizationThreshold}, {"scaleDownGpuUtilizationThreshold", o.GPUUtilizationThreshold}} {
		if x.value != nil && !(*x.value >= 0 && *x.value <= 1) {
			return fmt.Errorf("option %s is %v; it must be a ratio, from 0 to 1", x.name, *x.value)
		}
	}
	for _, x := range []struct {
		name  string
		value *metav1.Duration
	}{{"scaleDownUnneededTime", o.UnneededTime}, {"scaleDownUnreadyTime", o.UnreadyTime}} {
		if x.value != nil && x.value.Duration < 0 {
			return fmt.Errorf("option %s is %s; it must not be negative", x.name, x.value.Duration)
		}
	}
	for _, x := range []struct {
		name  string
		value *metav1.Duration
	}{{"maxNodeProvisionTime", o.ProvisionTime}, {"maxNodeStartupTime", o.StartupTime}} {
		if x.value != nil && x.value.Duration <= 0 {
			return fmt.Errorf("option %s is %s; it must be greater than 0", x.name, x.value.Duration)
		}
	}
	return nil
}
