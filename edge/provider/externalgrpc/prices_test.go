package externalgrpc_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPodsHaveAPrice as Cluster Autoscaler's expander price asks for it: it buys nothing without.
func TestPodsHaveAPrice(t *testing.T) {
	s := externalgrpc.NewServer(twoGroups())
	now := time.Unix(1000, 0)
	request := func(raw []byte, lasting time.Duration) *protocol.PricingPodPriceRequest {
		return &protocol.PricingPodPriceRequest{PodBytes: raw, StartTimestamp: timestamppb.New(now), EndTimestamp: timestamppb.New(now.Add(lasting))}
	}
	pod := testkit.Must(testkit.Pod("p").Req("cpu", "1", "memory", "4Gi").Obj().Marshal())
	endless := bytes.ReplaceAll(testkit.Must(testkit.Pod("p").Req("cpu", "1000000001").Obj().Marshal()), []byte("1000000001"), []byte("1e99999999"))
	for _, x := range []struct {
		name string
		in   *protocol.PricingPodPriceRequest
		want float64
		code codes.Code
	}{
		{"an hour of a core with 4 GiB", request(pod, time.Hour), 0.033174 + 4*0.004446, codes.OK},
		{"two hours cost twice as much", request(pod, 2*time.Hour), 2 * (0.033174 + 4*0.004446), codes.OK},
		{"a pod without requests is worth nothing", request(nil, time.Hour), 0, codes.OK},
		{"no pod", request([]byte("?"), time.Hour), 0, codes.InvalidArgument},
		{"a quantity that takes years to count with", request(endless, time.Hour), 0, codes.InvalidArgument},
		{"no period", &protocol.PricingPodPriceRequest{PodBytes: pod}, 0, codes.InvalidArgument},
		{"an end before the start", request(pod, -time.Hour), 0, codes.InvalidArgument},
	} {
		answer, err := s.PricingPodPrice(t.Context(), x.in)
		if got := answer.GetPrice(); status.Code(err) != x.code || math.Abs(got-x.want) > 1e-12 {
			t.Errorf("%s: %v, %v; want %v, %s", x.name, got, err, x.want, x.code)
		}
	}
}
