package externalgrpc_test

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
	"github.com/berthproject/berth/internal/test/testkit"
)

// asItIs hands the bytes of messages to grpc as they are.
type asItIs struct{}

func (asItIs) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (asItIs) Unmarshal(data []byte, v any) error { *v.(*[]byte) = slices.Clone(data); return nil }

func (asItIs) Name() string { return "proto" }

// FuzzAnswers has a server answer each call with some bytes, whatever they are. The client has an
// error or groups, which keep to the contract of providers: IDs differ and are in order, targets
// aren't negative, no instance is in two groups, prices are numbers, and options can be.
func FuzzAnswers(f *testing.F) {
	calls := []string{"NodeGroups", "NodeGroupTargetSize", "NodeGroupNodes", "NodeGroupTemplateNodeInfo", "NodeGroupGetOptions", "PricingNodePrice", "NodeGroupForNode"}
	seed := func(messages ...proto.Message) {
		var raw [7][]byte
		for i, m := range messages {
			if m == nil {
				continue
			}
			var err error
			if raw[i], err = proto.Marshal(m); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(raw[0], raw[1], raw[2], raw[3], raw[4], raw[5], raw[6])
	}
	node, err := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "110").Obj().Marshal()
	if err != nil {
		f.Fatal(err)
	}
	groups := &protocol.NodeGroupsResponse{NodeGroups: []*protocol.NodeGroup{{Id: "g", MinSize: 1, MaxSize: 3}, {Id: "h", MinSize: 5}, {Id: "g"}, {}}}
	instance := func(state protocol.InstanceStatus_InstanceState, class int32) *protocol.NodeGroupNodesResponse {
		return &protocol.NodeGroupNodesResponse{Instances: []*protocol.Instance{{Id: "i", Status: &protocol.InstanceStatus{InstanceState: state, ErrorInfo: &protocol.InstanceErrorInfo{ErrorCode: "E", InstanceErrorClass: class}}}, {}}}
	}
	seed(groups, &protocol.NodeGroupTargetSizeResponse{TargetSize: 2}, instance(2, 1), &protocol.NodeGroupTemplateNodeInfoResponse{NodeBytes: node},
		&protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: &protocol.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5}},
		&protocol.PricingNodePriceResponse{Price: 0.5}, &protocol.NodeGroupForNodeResponse{NodeGroup: &protocol.NodeGroup{Id: "g"}})
	seed(groups, &protocol.NodeGroupTargetSizeResponse{TargetSize: -2}, instance(3, 99), &protocol.NodeGroupTemplateNodeInfoResponse{NodeBytes: []byte("none")},
		&protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: &protocol.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: math.NaN()}},
		&protocol.PricingNodePriceResponse{Price: math.NaN()}, &protocol.NodeGroupForNodeResponse{NodeGroup: &protocol.NodeGroup{Id: "zzz"}})

	for _, amount := range []string{"4e999999999", "1e-999999999", strings.Repeat("9", 200) + "e-999999999"} {
		// Two fields of a message in another, of the name and of the amount, of a map in the status.
		quantity := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), amount)
		entry := protowire.AppendBytes(protowire.AppendTag(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "cpu"), 2, protowire.BytesType), quantity)
		status := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), entry)
		node := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), status)
		seed(groups, &protocol.NodeGroupTargetSizeResponse{TargetSize: 2}, instance(2, 1), &protocol.NodeGroupTemplateNodeInfoResponse{NodeBytes: node}, nil, nil, nil)
	}

	answers := map[string][]byte{} // by call; changed while no call is under way
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(asItIs{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		answer := answers[path.Base(method)]
		return stream.SendMsg(&answer)
	}))
	go func() { _ = server.Serve(listener) }() // ends with Stop
	f.Cleanup(server.Stop)
	f.Fuzz(func(t *testing.T, groups, target, nodes, template, options, price, forNode []byte) {
		for i, raw := range [][]byte{groups, target, nodes, template, options, price, forNode} {
			answers[calls[i]] = raw
		}
		if strings.Count(string(groups), "\n") > 100 {
			return // more groups than say anything new
		}
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		c, err := externalgrpc.NewClient(&externalgrpc.Config{Address: listener.Addr().String()}, allDefaults(), func() time.Time { return time.Unix(1000, 0) }, log)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		n := testkit.Node("n").Obj()
		c.GroupOf(n)
		list, err := c.Groups(context.Background())
		if err != nil {
			return
		}
		last, in := "", map[string]string{}
		for i, g := range list {
			if i > 0 && g.ID <= last {
				t.Errorf("group %q comes after %q", g.ID, last)
			}
			last = g.ID
			if g.Unreadable != "" {
				continue
			}
			if g.Target < 0 || g.ValidatePrice() != nil || g.Options.Validate() != nil || g.ID != "" && g.Template == nil == (g.TemplateError == "") {
				t.Errorf("group %+v with options %+v", g, g.Options)
			}
			for _, x := range g.Instances {
				if another, ok := in[x.ID]; x.ID == "" || ok && another != g.ID {
					t.Errorf("instance %q is in groups %q and %q", x.ID, another, g.ID)
				}
				in[x.ID] = g.ID
			}
		}
		if id := c.GroupOf(n); id != "" && !slices.ContainsFunc(list, func(g nodegroup.Group) bool { return g.ID == id }) {
			t.Errorf("the node is of group %q, which isn't listed", id)
		}
	})
}
