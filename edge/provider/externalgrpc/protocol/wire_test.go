package protocol_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// This file holds the messages to the bytes that Cluster Autoscaler sends and expects, written by
// hand from its field numbers. hack/generate holds the generated code to the .proto file.

// field appends a field with a length, or a number.
func field(b []byte, number protowire.Number, value any) []byte {
	switch v := value.(type) {
	case string:
		return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
	case []byte:
		return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
	case int:
		return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
	case uint64: // the bits of a double
		return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), v)
	}
	panic("no such field")
}

// message appends fields: number, value, number, value …
func message(fields ...any) []byte {
	var b []byte
	for i := 0; i < len(fields); i += 2 {
		b = field(b, protowire.Number(fields[i].(int)), fields[i+1])
	}
	return b
}

const half, quarter = uint64(0x3fe0000000000000), uint64(0x3fd0000000000000) // of the doubles 0.5 and 0.25

func TestTheWireIsClusterAutoscalers(t *testing.T) {
	node := message(1, "sim://n1", 2, "n1", 3, message(1, "k", 2, "v"), 4, message(1, "a", 2, "b"))
	nodeMessage := &protocol.ExternalGrpcNode{ProviderID: "sim://n1", Name: "n1", Labels: map[string]string{"k": "v"}, Annotations: map[string]string{"a": "b"}}
	group := message(1, "g", 2, 1, 3, 9, 4, "for people")
	groupMessage := &protocol.NodeGroup{Id: "g", MinSize: 1, MaxSize: 9, Debug: "for people"}
	stamp := func(seconds int) []byte { return message(1, seconds) }
	seconds := func(n int64) *timestamppb.Timestamp { return &timestamppb.Timestamp{Seconds: n} }
	options := message(1, half, 2, quarter, 3, message(1, 60), 4, message(1, 61), 5, message(1, 62), 6, 1, 7, 1, 8, message(1, 2), 9, message(1, 3), 10, message(1, 4), 11, message(1, 5), 12, 1)
	optionsMessage := &protocol.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: 0.5, ScaleDownGpuUtilizationThreshold: 0.25, ZeroOrMaxNodeScaling: true, IgnoreDaemonSetsUtilization: true,
		UnneededLegacy: &protocol.LegacyDuration{Nanoseconds: 60}, UnreadyLegacy: &protocol.LegacyDuration{Nanoseconds: 61}, ProvisionLegacy: &protocol.LegacyDuration{Nanoseconds: 62},
		ScaleDownUnneededDuration: &durationpb.Duration{Seconds: 2}, ScaleDownUnreadyDuration: &durationpb.Duration{Seconds: 3},
		MaxNodeProvisionDuration: &durationpb.Duration{Seconds: 4}, MaxNodeStartupDuration: &durationpb.Duration{Seconds: 5}, AllowNonAtomicScaleUpToMax: true,
	}
	for _, x := range []struct {
		message proto.Message
		want    []byte
	}{
		{&protocol.NodeGroupsResponse{NodeGroups: []*protocol.NodeGroup{groupMessage}}, message(1, group)},
		{&protocol.NodeGroupForNodeRequest{Node: nodeMessage}, message(1, node)},
		{&protocol.NodeGroupForNodeResponse{NodeGroup: groupMessage}, message(1, group)},
		{&protocol.NodeGroupTargetSizeRequest{Id: "g"}, message(1, "g")},
		{&protocol.NodeGroupTargetSizeResponse{TargetSize: 7}, message(1, 7)},
		{&protocol.NodeGroupIncreaseSizeRequest{Delta: 3, Id: "g"}, message(1, 3, 2, "g")},
		{&protocol.NodeGroupDeleteNodesRequest{Nodes: []*protocol.ExternalGrpcNode{nodeMessage}, Id: "g"}, message(1, node, 2, "g")},
		{&protocol.NodeGroupDecreaseTargetSizeRequest{Delta: -2, Id: "g"}, message(1, -2, 2, "g")},
		{&protocol.NodeGroupNodesRequest{Id: "g"}, message(1, "g")},
		{&protocol.NodeGroupNodesResponse{Instances: []*protocol.Instance{{Id: "i", Status: &protocol.InstanceStatus{
			InstanceState: protocol.InstanceStatus_instanceCreating, ErrorInfo: &protocol.InstanceErrorInfo{ErrorCode: "QUOTA", ErrorMessage: "used up", InstanceErrorClass: 1}}}}},
			message(1, message(1, "i", 2, message(1, 2, 2, message(1, "QUOTA", 2, "used up", 3, 1))))},
		{&protocol.Instance{Status: &protocol.InstanceStatus{InstanceState: protocol.InstanceStatus_instanceRunning}}, message(2, message(1, 1))},
		{&protocol.Instance{Status: &protocol.InstanceStatus{InstanceState: protocol.InstanceStatus_instanceDeleting}}, message(2, message(1, 3))},
		{&protocol.NodeGroupTemplateNodeInfoRequest{Id: "g"}, message(1, "g")},
		{&protocol.NodeGroupTemplateNodeInfoResponse{NodeLegacy: []byte("old"), NodeBytes: []byte("new"), ResourceSliceBytes: [][]byte{[]byte("slice")}}, message(1, "old", 2, "new", 3, "slice")},
		{&protocol.NodeGroupAutoscalingOptionsRequest{Id: "g", Defaults: optionsMessage}, message(1, "g", 2, options)},
		{&protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: optionsMessage}, message(1, options)},
		{&protocol.PricingNodePriceRequest{Node: nodeMessage, StartLegacy: seconds(1), EndLegacy: seconds(2), StartTimestamp: seconds(3), EndTimestamp: seconds(4)},
			message(1, node, 2, stamp(1), 3, stamp(2), 4, stamp(3), 5, stamp(4))},
		{&protocol.PricingNodePriceResponse{Price: 0.5}, message(1, half)},
		{&protocol.PricingPodPriceRequest{PodBytes: []byte("pod"), StartTimestamp: seconds(3), EndTimestamp: seconds(4)}, message(4, "pod", 5, stamp(3), 6, stamp(4))},
		{&protocol.PricingPodPriceResponse{Price: 0.25}, message(1, quarter)},
		{&protocol.GPULabelResponse{Label: "gpu"}, message(1, "gpu")},
	} {
		name := x.message.ProtoReflect().Descriptor().Name()
		got, err := proto.MarshalOptions{Deterministic: true}.Marshal(x.message)
		if err != nil || !bytes.Equal(got, x.want) {
			t.Errorf("%s is written as %x (%v), want %x", name, got, err, x.want)
		}
		read := x.message.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(x.want, read); err != nil || !proto.Equal(read, x.message) {
			t.Errorf("%s is read as %v (%v), want %v", name, read, err, x.message)
		}
	}
}

// TestTheServiceIsClusterAutoscalers: servers register, and clients call, these names.
func TestTheServiceIsClusterAutoscalers(t *testing.T) {
	want := []string{
		"NodeGroups", "NodeGroupForNode", "PricingNodePrice", "PricingPodPrice", "GPULabel", "GetAvailableGPUTypes", "Cleanup", "Refresh",
		"NodeGroupTargetSize", "NodeGroupIncreaseSize", "NodeGroupDeleteNodes", "NodeGroupDecreaseTargetSize", "NodeGroupNodes",
		"NodeGroupTemplateNodeInfo", "NodeGroupGetOptions",
	}
	service := protocol.CloudProvider_ServiceDesc
	if service.ServiceName != "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider" {
		t.Errorf("the service is %s", service.ServiceName)
	}
	is := map[string]bool{}
	for _, m := range service.Methods {
		is[m.MethodName] = true
	}
	for _, name := range want {
		if !is[name] {
			t.Errorf("there is no call %s", name)
		}
	}
	if len(is) != len(want) {
		t.Errorf("there are %d calls, want %d", len(is), len(want))
	}
}
