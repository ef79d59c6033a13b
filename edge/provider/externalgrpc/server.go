package externalgrpc

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// Server serves a provider. What it tells of the groups is of the last Refresh, or of the last
// call that has changed a group, whichever was later. It knows no GPU labels.
// Any number of clients may call it at once.
type Server struct {
	protocol.UnimplementedCloudProviderServer
	provider nodegroup.Provider

	mu     sync.Mutex
	groups []nodegroup.Group           // guarded by mu; nil when they are to be read again
	byID   map[string]*nodegroup.Group // guarded by mu
}

// NewServer returns a server of a provider.
func NewServer(provider nodegroup.Provider) *Server { return &Server{provider: provider} }

// Serve serves on a listener until the context ends; calls that are under way then are answered.
// An error says what of the files can't be used, or why the listener fails.
// The limit on messages is that of the client.
func (s *Server) Serve(ctx context.Context, listener net.Listener, files ServerTLS) error {
	secured, err := files.credentials()
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.Creds(secured), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	protocol.RegisterCloudProviderServer(g, s)
	stop := context.AfterFunc(ctx, g.GracefulStop)
	defer stop()
	return g.Serve(listener)
}

// Refresh implements protocol.CloudProviderServer.
// Its error is the provider's; the next call tries again.
func (s *Server) Refresh(ctx context.Context, _ *protocol.RefreshRequest) (*protocol.RefreshResponse, error) {
	s.forget()
	_, err := s.list(ctx)
	return &protocol.RefreshResponse{}, err
}

// Cleanup implements protocol.CloudProviderServer: the provider outlives its clients.
func (s *Server) Cleanup(context.Context, *protocol.CleanupRequest) (*protocol.CleanupResponse, error) {
	return &protocol.CleanupResponse{}, nil
}

// forget makes the next call read the groups again.
// It is called after each change, also after one that has failed: what became of it isn't
// known.
func (s *Server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = nil
}

// list returns the groups. They aren't to be changed.
// It holds the lock while the provider reads, so that two calls don't read at once.
func (s *Server) list(ctx context.Context) ([]nodegroup.Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups != nil {
		return s.groups, nil
	}
	groups, err := s.provider.Groups(ctx)
	if err != nil {
		return nil, code(err)
	}
	s.groups, s.byID = groups, map[string]*nodegroup.Group{}
	for i := range groups {
		s.byID[groups[i].ID] = &groups[i]
	}
	return groups, nil
}

// group returns the group with an ID.
// A group that can't be read now is another error than one that doesn't exist: clients
// forget the latter.
func (s *Server) group(ctx context.Context, id string) (*nodegroup.Group, error) {
	if _, err := s.list(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.byID[id]
	switch {
	case g == nil:
		return nil, status.Errorf(codes.NotFound, "node group %q not found", id)
	case g.Unreadable != "":
		return nil, status.Errorf(codes.Unavailable, "node group %q: %s", id, g.Unreadable)
	}
	return g, nil
}

// code returns an error of the provider's with the code that says as much. callError on the other side
// makes an error of the same class of it.
// Cluster Autoscaler backs off differently for a cloud that is out of resources.
func code(err error) error {
	if err == nil {
		return nil
	}
	if nodegroup.ClassOf(err) == nodegroup.OutOfResources {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Error(codes.Unknown, err.Error())
}

func groupMessage(g *nodegroup.Group) *protocol.NodeGroup {
	return &protocol.NodeGroup{Id: g.ID, MinSize: int32(g.Min), MaxSize: int32(g.Max)}
}

// NodeGroups implements protocol.CloudProviderServer.
func (s *Server) NodeGroups(ctx context.Context, _ *protocol.NodeGroupsRequest) (*protocol.NodeGroupsResponse, error) {
	groups, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	out := &protocol.NodeGroupsResponse{}
	for i := range groups {
		out.NodeGroups = append(out.NodeGroups, groupMessage(&groups[i]))
	}
	return out, nil
}

// NodeGroupForNode implements protocol.CloudProviderServer.
func (s *Server) NodeGroupForNode(ctx context.Context, in *protocol.NodeGroupForNodeRequest) (*protocol.NodeGroupForNodeResponse, error) {
	out := &protocol.NodeGroupForNodeResponse{NodeGroup: &protocol.NodeGroup{}}
	id, err := s.groupOf(ctx, in.GetNode())
	if err != nil || id == "" {
		return out, err
	}
	g, err := s.group(ctx, id)
	if err != nil {
		return nil, err
	}
	out.NodeGroup = groupMessage(g)
	return out, nil
}

// groupOf returns the ID of a node's group, "" for none. Of an instance that is no node yet there
// is nothing but its ID: its group is the one that lists it.
// The provider is asked first: it may know a node by its labels.
func (s *Server) groupOf(ctx context.Context, n *protocol.ExternalGrpcNode) (string, error) {
	if id := s.provider.GroupOf(nodeOf(n)); id != "" {
		return id, nil
	}
	groups, err := s.list(ctx)
	if err != nil {
		return "", err
	}
	for i := range groups {
		for k := range groups[i].Instances {
			if id := groups[i].Instances[k].ID; id != "" && id == n.GetProviderID() {
				return groups[i].ID, nil
			}
		}
	}
	return "", nil
}

// GPULabel implements protocol.CloudProviderServer: nodes with GPUs are told by their resources,
// and have no label.
func (s *Server) GPULabel(context.Context, *protocol.GPULabelRequest) (*protocol.GPULabelResponse, error) {
	return &protocol.GPULabelResponse{}, nil
}

// GetAvailableGPUTypes implements protocol.CloudProviderServer.
func (s *Server) GetAvailableGPUTypes(context.Context, *protocol.GetAvailableGPUTypesRequest) (*protocol.GetAvailableGPUTypesResponse, error) {
	return &protocol.GetAvailableGPUTypesResponse{}, nil
}

// NodeGroupTargetSize implements protocol.CloudProviderServer.
func (s *Server) NodeGroupTargetSize(ctx context.Context, in *protocol.NodeGroupTargetSizeRequest) (*protocol.NodeGroupTargetSizeResponse, error) {
	g, err := s.group(ctx, in.GetId())
	if err != nil {
		return nil, err
	}
	return &protocol.NodeGroupTargetSizeResponse{TargetSize: int32(g.Target)}, nil
}

// NodeGroupIncreaseSize implements protocol.CloudProviderServer.
func (s *Server) NodeGroupIncreaseSize(ctx context.Context, in *protocol.NodeGroupIncreaseSizeRequest) (*protocol.NodeGroupIncreaseSizeResponse, error) {
	if _, err := s.group(ctx, in.GetId()); err != nil {
		return nil, err
	}
	if in.GetDelta() <= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "delta is %d; it must be greater than 0", in.GetDelta())
	}
	defer s.forget()
	return &protocol.NodeGroupIncreaseSizeResponse{}, code(s.provider.IncreaseSize(ctx, in.GetId(), int(in.GetDelta())))
}

// NodeGroupDeleteNodes implements protocol.CloudProviderServer.
func (s *Server) NodeGroupDeleteNodes(ctx context.Context, in *protocol.NodeGroupDeleteNodesRequest) (*protocol.NodeGroupDeleteNodesResponse, error) {
	if _, err := s.group(ctx, in.GetId()); err != nil {
		return nil, err
	}
	var list []nodegroup.Instance
	for _, n := range in.GetNodes() {
		x := nodegroup.Instance{ID: n.GetProviderID(), Node: n.GetName()}
		if x.Node == x.ID {
			x.Node = "" // a client names an instance so that isn't a node
		}
		if x == (nodegroup.Instance{}) {
			return nil, status.Error(codes.InvalidArgument, "a node has neither a providerID nor a name; give at least one")
		}
		list = append(list, x)
	}
	defer s.forget()
	return &protocol.NodeGroupDeleteNodesResponse{}, code(s.provider.DeleteNodes(ctx, in.GetId(), list))
}

// NodeGroupDecreaseTargetSize implements protocol.CloudProviderServer.
func (s *Server) NodeGroupDecreaseTargetSize(ctx context.Context, in *protocol.NodeGroupDecreaseTargetSizeRequest) (*protocol.NodeGroupDecreaseTargetSizeResponse, error) {
	if _, err := s.group(ctx, in.GetId()); err != nil {
		return nil, err
	}
	if in.GetDelta() >= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "delta is %d; it must be less than 0", in.GetDelta())
	}
	defer s.forget()
	// The protocol has a negative delta, the provider a positive number.
	return &protocol.NodeGroupDecreaseTargetSizeResponse{}, code(s.provider.DecreaseTargetSize(ctx, in.GetId(), -int(in.GetDelta())))
}

// NodeGroupNodes implements protocol.CloudProviderServer.
func (s *Server) NodeGroupNodes(ctx context.Context, in *protocol.NodeGroupNodesRequest) (*protocol.NodeGroupNodesResponse, error) {
	g, err := s.group(ctx, in.GetId())
	if err != nil {
		return nil, err
	}
	out := &protocol.NodeGroupNodesResponse{}
	for i := range g.Instances {
		out.Instances = append(out.Instances, instanceMessage(&g.Instances[i]))
	}
	return out, nil
}

// NodeGroupTemplateNodeInfo implements protocol.CloudProviderServer.
func (s *Server) NodeGroupTemplateNodeInfo(ctx context.Context, in *protocol.NodeGroupTemplateNodeInfoRequest) (*protocol.NodeGroupTemplateNodeInfoResponse, error) {
	g, err := s.group(ctx, in.GetId())
	if err != nil {
		return nil, err
	}
	// The client reports it as the reason why the group can't grow from zero.
	if g.TemplateError != "" {
		return nil, status.Error(codes.FailedPrecondition, g.TemplateError)
	}
	var n v1.Node
	if g.Template != nil {
		n = *g.Template
	}
	return templateMessage(&n)
}

// NodeGroupGetOptions implements protocol.CloudProviderServer.
func (s *Server) NodeGroupGetOptions(ctx context.Context, in *protocol.NodeGroupAutoscalingOptionsRequest) (*protocol.NodeGroupAutoscalingOptionsResponse, error) {
	g, err := s.group(ctx, in.GetId())
	if err != nil {
		return nil, err
	}
	out := &protocol.NodeGroupAutoscalingOptionsResponse{}
	if g.Options != nil {
		out.NodeGroupAutoscalingOptions = optionsMessage(g.Options, in.GetDefaults())
	}
	return out, nil
}
