package externalgrpc_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// TestAnInstanceWithoutANodeIsOfItsGroup: Cluster Autoscaler asks for one by its provider ID alone,
// has it removed when it takes too long to be a node, and asks for the GPU label of every node.
func TestAnInstanceWithoutANodeIsOfItsGroup(t *testing.T) {
	p := newFakeProvider(group("a"), group("b", func(g *nodegroup.Group) { g.Instances = []nodegroup.Instance{{ID: "fake://b/0"}} }))
	conn, err := grpc.NewClient(serve(t, p, nil), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // nothing is under way any more
	c := protocol.NewCloudProviderClient(conn)
	for _, x := range []struct {
		name string
		node *protocol.ExternalGrpcNode
		want string
	}{
		{"an instance that is no node yet", &protocol.ExternalGrpcNode{Name: "fake://b/0", ProviderID: "fake://b/0"}, "b"},
		{"a node that the provider knows by its label", &protocol.ExternalGrpcNode{Name: "n", ProviderID: "fake://b/0", Labels: map[string]string{"group": "a"}}, "a"},
		{"somebody else's", &protocol.ExternalGrpcNode{Name: "n", ProviderID: "fake://c/0"}, ""},
		{"one without an ID", &protocol.ExternalGrpcNode{Name: "n"}, ""},
	} {
		got, err := c.NodeGroupForNode(t.Context(), &protocol.NodeGroupForNodeRequest{Node: x.node})
		if err != nil || got.GetNodeGroup().GetId() != x.want {
			t.Errorf("%s: of group %q (%v), want %q", x.name, got.GetNodeGroup().GetId(), err, x.want)
		}
	}
	if got, err := c.GPULabel(t.Context(), &protocol.GPULabelRequest{}); err != nil || got.GetLabel() != "" {
		t.Errorf("the GPU label is %q (%v), want none", got.GetLabel(), err)
	}
	if got, err := c.GetAvailableGPUTypes(t.Context(), &protocol.GetAvailableGPUTypesRequest{}); err != nil || len(got.GetGpuTypes()) != 0 {
		t.Errorf("GPU types %v (%v), want none", got.GetGpuTypes(), err)
	}
}
