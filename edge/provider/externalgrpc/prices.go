package externalgrpc

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// This file serves prices. Cluster Autoscaler's expander price leaves out every option with a pod that
// has no price, so pods have a price wherever nodes have one: that of Berth's own expander.

// PricingNodePrice implements protocol.CloudProviderServer. The price is that of the node's group: all
// its nodes cost the same here.
func (s *Server) PricingNodePrice(ctx context.Context, in *protocol.PricingNodePriceRequest) (*protocol.PricingNodePriceResponse, error) {
	id, err := s.groupOf(ctx, in.GetNode())
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, status.Errorf(codes.NotFound, "node %q is in no node group", in.GetNode().GetName())
	}
	g, err := s.group(ctx, id)
	if err != nil {
		return nil, err
	}
	start, end := in.GetStartTimestamp(), in.GetEndTimestamp()
	if start == nil || end == nil {
		start, end = in.GetStartLegacy(), in.GetEndLegacy()
	}
	lasting, err := period(start, end)
	if err != nil {
		return nil, err
	}
	return &protocol.PricingNodePriceResponse{Price: g.Price * lasting.Hours()}, nil
}

// PricingPodPrice implements protocol.CloudProviderServer: a pod is worth what its requests are at the
// prices of Berth's expander price, whichever group it goes to.
func (s *Server) PricingPodPrice(_ context.Context, in *protocol.PricingPodPriceRequest) (*protocol.PricingPodPriceResponse, error) {
	if text := longAmount(in.GetPodBytes()); text != "" {
		return nil, status.Errorf(codes.InvalidArgument, "pod_bytes has the quantity %q; its exponent must have at most three digits", text)
	}
	var pod v1.Pod
	if err := pod.Unmarshal(in.GetPodBytes()); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "reading pod_bytes: %v; it must be a v1.Pod as protobuf", err)
	}
	door.Object(&pod)
	lasting, err := period(in.GetStartTimestamp(), in.GetEndTimestamp())
	if err != nil {
		return nil, err
	}
	worth := expander.Worth(cluster.NewSchema().ParsePod(&pod))
	return &protocol.PricingPodPriceResponse{Price: worth * lasting.Hours()}, nil
}

// period returns how long a period is that a price is asked for.
func period(start, end *timestamppb.Timestamp) (time.Duration, error) {
	if !start.IsValid() || !end.IsValid() || end.AsTime().Before(start.AsTime()) {
		return 0, status.Errorf(codes.InvalidArgument, "the period is from %v to %v; endTimestamp must not be before startTimestamp", start, end)
	}
	return end.AsTime().Sub(start.AsTime()), nil
}
