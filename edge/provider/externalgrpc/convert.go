package externalgrpc

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// This file turns messages into what Berth has, and back. Whatever a server or a client sends
// becomes a value or an error.

// The classes of failures of instances, as Cluster Autoscaler numbers them.
const (
	classOutOfResources = 1
	classOther          = 99
)

// instances returns those of a group that aren't being deleted, and the IDs of all. What is being
// deleted isn't counted on, but its node belongs to the group until it is gone.
func instances(answer *protocol.NodeGroupNodesResponse) (list []nodegroup.Instance, ids []string) {
	list = []nodegroup.Instance{}
	for _, in := range answer.GetInstances() {
		if in.GetId() == "" {
			continue // it can't be told from others
		}
		ids = append(ids, in.GetId())
		if in.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceDeleting {
			continue
		}
		out := nodegroup.Instance{ID: in.GetId()}
		// As with Cluster Autoscaler an error counts while the instance is being created: one
		// that runs may be a node yet.
		if e := in.GetStatus().GetErrorInfo(); e.GetErrorCode() != "" && in.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceCreating {
			out.Failed, out.Code = e.GetErrorCode(), e.GetErrorCode()
			if e.GetErrorMessage() != "" {
				out.Failed += ": " + e.GetErrorMessage()
			}
			if e.GetInstanceErrorClass() == classOutOfResources {
				out.Class = nodegroup.OutOfResources
			}
		}
		list = append(list, out)
	}
	return list, ids
}

// instanceMessage is the message of an instance. That one runs isn't known here.
func instanceMessage(in *nodegroup.Instance) *protocol.Instance {
	out := &protocol.Instance{Id: in.ID, Status: &protocol.InstanceStatus{ErrorInfo: &protocol.InstanceErrorInfo{}}}
	if in.Failed != "" {
		class := int32(classOther)
		if in.Class == nodegroup.OutOfResources {
			class = classOutOfResources
		}
		out.Status.InstanceState = protocol.InstanceStatus_instanceCreating
		out.Status.ErrorInfo = &protocol.InstanceErrorInfo{ErrorCode: in.FailureCode(), ErrorMessage: in.Failed, InstanceErrorClass: class}
	}
	return out
}

// template returns the node of an answer. What it has, all of it can be allocated when the server
// doesn't say how much.
func template(answer *protocol.NodeGroupTemplateNodeInfoResponse) (*v1.Node, error) {
	raw := answer.GetNodeBytes()
	if len(raw) == 0 {
		raw = answer.GetNodeLegacy()
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("the response has no node; it must have a v1.Node in nodeBytes, or answer UNIMPLEMENTED")
	}
	if text := longAmount(raw); text != "" {
		return nil, fmt.Errorf("nodeBytes has the quantity %q; its exponent must have at most three digits", text)
	}
	n := &v1.Node{}
	if err := n.Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("nodeBytes can't be decoded: %w; it must be a v1.Node as protobuf", err)
	}
	door.Object(n)
	if len(n.Status.Allocatable) == 0 {
		n.Status.Allocatable = n.Status.Capacity
	}
	return n, nil
}

// hasLongExponent matches amounts that would take seconds or years to be read.
var hasLongExponent = regexp.MustCompile(`^[+-]?[0-9.]+[eE][+-]?[0-9]{4,}$`)

// longAmount returns the first amount in the bytes of a message that would take seconds or years
// to be read, "" when there is none. An amount is a message whose first field is its text.
func longAmount(raw []byte) string {
	const first = 1<<3 | 2 // field 1, of bytes
	for i := range raw {
		if raw[i] != first {
			continue
		}
		length, n := binary.Uvarint(raw[i+1:])
		if from := i + 1 + n; n > 0 && length <= uint64(len(raw)-from) {
			if text := raw[from : from+int(length)]; hasLongExponent.Match(text) {
				return string(text)
			}
		}
	}
	return ""
}

// templateMessage is the message of a template.
func templateMessage(n *v1.Node) (*protocol.NodeGroupTemplateNodeInfoResponse, error) {
	raw, err := n.Marshal()
	if err != nil {
		return nil, fmt.Errorf("writing the template: %w", err)
	}
	return &protocol.NodeGroupTemplateNodeInfoResponse{NodeBytes: raw, NodeLegacy: raw}, nil
}

// options returns those of a message, nil when it has none. Numbers and truth values count as
// they are, as with Cluster Autoscaler; a duration that is left out leaves the flag's.
func options(m *protocol.NodeGroupAutoscalingOptions) (*cluster.GroupOptions, error) {
	if m == nil {
		return nil, nil
	}
	threshold, gpuThreshold, daemons := m.GetScaleDownUtilizationThreshold(), m.GetScaleDownGpuUtilizationThreshold(), m.GetIgnoreDaemonSetsUtilization()
	out := &cluster.GroupOptions{
		UtilizationThreshold: &threshold, GPUUtilizationThreshold: &gpuThreshold,
		IgnoreDaemonSetsUtilization: &daemons, ZeroOrMax: m.GetZeroOrMaxNodeScaling(),
	}
	for _, x := range []struct {
		name   string
		value  *durationpb.Duration
		legacy *protocol.LegacyDuration
		to     **metav1.Duration
	}{
		{"scaleDownUnneededDuration", m.GetScaleDownUnneededDuration(), m.GetUnneededLegacy(), &out.UnneededTime},
		{"scaleDownUnreadyDuration", m.GetScaleDownUnreadyDuration(), m.GetUnreadyLegacy(), &out.UnreadyTime},
		{"MaxNodeProvisionDuration", m.GetMaxNodeProvisionDuration(), m.GetProvisionLegacy(), &out.ProvisionTime},
		{"maxNodeStartupDuration", m.GetMaxNodeStartupDuration(), nil, &out.StartupTime},
	} {
		switch {
		case x.value != nil:
			if err := x.value.CheckValid(); err != nil {
				return nil, fmt.Errorf("option %s is invalid: %w", x.name, err)
			}
			*x.to = &metav1.Duration{Duration: x.value.AsDuration()}
		case x.legacy != nil:
			*x.to = &metav1.Duration{Duration: time.Duration(x.legacy.GetNanoseconds())}
		}
	}
	for _, d := range []**metav1.Duration{&out.ProvisionTime, &out.StartupTime} {
		if *d != nil && (*d).Duration == 0 {
			*d = nil // no instance becomes a usable node in no time: so a server answers that knows no such option
		}
	}
	return out, nil
}

// ignoredOption says which option of a message isn't honoured, "" for none.
func ignoredOption(m *protocol.NodeGroupAutoscalingOptions) string {
	if m.GetAllowNonAtomicScaleUpToMax() {
		return "allowNonAtomicScaleUpToMax is true but not supported: a group is scaled up by the nodes that pods need"
	}
	return ""
}

// optionsMessage is the message of options, in which those that are nil are as in defaults. Durations
// are in the older and in the newer form where there are both: a peer reads the one that it knows.
func optionsMessage(o *cluster.GroupOptions, defaults *protocol.NodeGroupAutoscalingOptions) *protocol.NodeGroupAutoscalingOptions {
	out := &protocol.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold:    valueOr(o.UtilizationThreshold, defaults.GetScaleDownUtilizationThreshold()),
		ScaleDownGpuUtilizationThreshold: valueOr(o.GPUUtilizationThreshold, defaults.GetScaleDownGpuUtilizationThreshold()),
		IgnoreDaemonSetsUtilization:      valueOr(o.IgnoreDaemonSetsUtilization, defaults.GetIgnoreDaemonSetsUtilization()),
		ZeroOrMaxNodeScaling:             o.ZeroOrMax || defaults.GetZeroOrMaxNodeScaling(),
		ScaleDownUnneededDuration:        defaults.GetScaleDownUnneededDuration(), UnneededLegacy: defaults.GetUnneededLegacy(),
		ScaleDownUnreadyDuration: defaults.GetScaleDownUnreadyDuration(), UnreadyLegacy: defaults.GetUnreadyLegacy(),
		MaxNodeProvisionDuration: defaults.GetMaxNodeProvisionDuration(), ProvisionLegacy: defaults.GetProvisionLegacy(),
		MaxNodeStartupDuration: defaults.GetMaxNodeStartupDuration(),
	}
	for _, x := range []struct {
		value  *metav1.Duration
		to     **durationpb.Duration
		legacy **protocol.LegacyDuration
	}{
		{o.UnneededTime, &out.ScaleDownUnneededDuration, &out.UnneededLegacy},
		{o.UnreadyTime, &out.ScaleDownUnreadyDuration, &out.UnreadyLegacy},
		{o.ProvisionTime, &out.MaxNodeProvisionDuration, &out.ProvisionLegacy},
	} {
		if x.value != nil {
			*x.to, *x.legacy = durationpb.New(x.value.Duration), &protocol.LegacyDuration{Nanoseconds: int64(x.value.Duration)}
		}
	}
	if o.StartupTime != nil { // the older protocol has no such field
		out.MaxNodeStartupDuration = durationpb.New(o.StartupTime.Duration)
	}
	return out
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// nodeMessage is the message of a node.
func nodeMessage(n *v1.Node) *protocol.ExternalGrpcNode {
	return &protocol.ExternalGrpcNode{ProviderID: n.Spec.ProviderID, Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}
}

// nodeOf returns the node of a message.
func nodeOf(m *protocol.ExternalGrpcNode) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.GetName(), Labels: m.GetLabels(), Annotations: m.GetAnnotations()},
		Spec:       v1.NodeSpec{ProviderID: m.GetProviderID()},
	}
}
