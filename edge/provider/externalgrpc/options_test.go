package externalgrpc_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// TestOptionsThatCantBeAreLeftOut: those that were good hold.
func TestOptionsThatCantBeAreLeftOut(t *testing.T) {
	answers := []*protocol.NodeGroupAutoscalingOptions{
		{ScaleDownUtilizationThreshold: 0.25}, {ScaleDownUtilizationThreshold: math.NaN()}, {ScaleDownUtilizationThreshold: 7},
		{ScaleDownUnneededDuration: &durationpb.Duration{Seconds: -1}}, {ScaleDownUnneededDuration: &durationpb.Duration{Seconds: math.MaxInt64}}, nil,
	}
	var next int
	b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, call string, _ any, otherwise func() (any, error)) (any, error) {
		if call == "NodeGroupGetOptions" {
			next++
			return &protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: answers[next-1]}, nil
		}
		return otherwise()
	})
	for i := range answers {
		o := b.list(t)[0].Options
		if none := answers[i] == nil; none != (o == nil) || !none && *o.UtilizationThreshold != 0.25 {
			t.Errorf("answer %d: %v became %+v", i, answers[i], o)
		}
	}
}

// TestOptionsThatArentHonouredAreSaid once for each group that has them, until they change.
func TestOptionsThatArentHonouredAreSaid(t *testing.T) {
	const nonAtomic = `msg="external provider problem" about="options of b" err="allowNonAtomicScaleUpToMax is true but not supported: a group is scaled up by the nodes that pods need"`
	var options atomic.Value
	b := newBed(t, long, newFakeProvider(group("a"), group("b")), func(_ context.Context, call string, request any, next func() (any, error)) (any, error) {
		if r, ok := request.(*protocol.NodeGroupAutoscalingOptionsRequest); ok && r.GetId() == "b" {
			if o := options.Load().(*protocol.NodeGroupAutoscalingOptions); o != nil {
				return &protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: o}, nil
			}
			return nil, status.Error(codes.Internal, "broken")
		}
		return next()
	})
	for _, x := range []struct {
		name    string
		options *protocol.NodeGroupAutoscalingOptions
		want    string
	}{
		{"not there", &protocol.NodeGroupAutoscalingOptions{}, ""},
		{"there", &protocol.NodeGroupAutoscalingOptions{AllowNonAtomicScaleUpToMax: true}, nonAtomic},
	} {
		options.Store(x.options)
		b.list(t)
		b.list(t) // the second says it no more
		if log := b.log.take(); log != x.want {
			t.Errorf("%s: logged %q, want %q", x.name, log, x.want)
		}
	}
	options.Store((*protocol.NodeGroupAutoscalingOptions)(nil))
	b.list(t)
	if log, want := b.log.take(), `msg="external provider problem" about="NodeGroupGetOptions of b" err="NodeGroupGetOptions: Internal: broken; the last known options are used"`; log != want {
		t.Errorf("the options can't be read: logged %q, want %q", log, want)
	}
}

// TestFlagsThatAServerGivesBackAreNoOptions, also by one of a time when no start-up time was known.
func TestFlagsThatAServerGivesBackAreNoOptions(t *testing.T) {
	for _, older := range []bool{false, true} {
		b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, _ string, request any, next func() (any, error)) (any, error) {
			r, ok := request.(*protocol.NodeGroupAutoscalingOptionsRequest)
			if !ok {
				return next()
			}
			if older {
				r.Defaults.MaxNodeStartupDuration = nil
			}
			return &protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: r.GetDefaults()}, nil
		})
		if o := b.list(t)[0].Options; o != nil {
			t.Errorf("older server: %t; got options %+v, want none", older, o)
		}
	}
}
