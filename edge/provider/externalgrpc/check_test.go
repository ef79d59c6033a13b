package externalgrpc_test

import (
	"context"
	"errors"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// took are the times that calls took.
var took = regexp.MustCompile(`in [0-9.]+[mµ]?s\)`)

// checked runs the check against a provider's server.
func checked(t *testing.T, what externalgrpc.Checking, p nodegroup.Provider, f intercept) (string, error) {
	t.Helper()
	var out strings.Builder
	what.Wait = 10 * time.Millisecond
	err := externalgrpc.Check(t.Context(), &externalgrpc.Config{Address: serve(t, p, f)}, what, &out)
	return took.ReplaceAllString(out.String(), "in …)"), err
}

func twoGroups() *fakeProvider {
	return newFakeProvider(group("a", func(g *nodegroup.Group) { g.Target, g.Instances = 1, []nodegroup.Instance{{ID: "fake://a/0"}} }), group("b", func(g *nodegroup.Group) { g.Max = 0 }))
}

// TestCheck of a server that is as Berth wants it: without and with changes.
func TestCheck(t *testing.T) {
	const reads = `ok         Refresh                      (in …)
ok         NodeGroups                   2 groups (in …)
ok         NodeGroupTargetSize          1 nodes are wanted (3 calls, the slowest in …)
ok         NodeGroupNodes               1 instances (2 calls, the slowest in …)
ok         NodeGroupForNode             (2 calls, the slowest in …)
ok         NodeGroupTemplateNodeInfo    templates are complete (2 calls, the slowest in …)
ok         NodeGroupGetOptions          (2 calls, the slowest in …)
ok         PricingNodePrice             (4 calls, the slowest in …)
ok         PricingPodPrice              Berth does not call it (in …)
ok         GPULabel                     Berth does not call it (in …)
ok         GetAvailableGPUTypes         Berth does not call it (in …)
`
	const end = "not tried  Cleanup                      it would make the server think that its client is shutting down\n"
	for _, x := range []struct {
		name, change, want string
	}{
		{"reading", "", reads + `not tried  NodeGroupIncreaseSize        it changes a group; use --change GROUP to try it
not tried  NodeGroupDecreaseTargetSize  it changes a group; use --change GROUP to try it
not tried  NodeGroupDeleteNodes         it changes a group; use --change GROUP to try it
` + end},
		{"changing", "a", reads + `ok         NodeGroupIncreaseSize        the target is raised at once (2 calls, the slowest in …)
ok         NodeGroupDecreaseTargetSize  the target is what it was before (in …)
ok         NodeGroupDeleteNodes         instance fake://a/1 was created and deleted (in …)
` + end},
	} {
		p := twoGroups()
		got, err := checked(t, externalgrpc.Checking{Change: x.change}, p, nil)
		if err != nil || got != x.want {
			t.Errorf("%s: %v\n got\n%s\nwant\n%s", x.name, err, got, x.want)
		}
		if x.change == "" && len(p.calls) > 0 {
			t.Errorf("without --change the check has made the calls %q", p.calls)
		}
		if p.groups["a"].Target != 1 {
			t.Errorf("%s: the target of the group is %d, and was 1", x.name, p.groups["a"].Target)
		}
	}
}

// TestCheckOfAServerWithACache: one that looks at its cloud in Refresh alone, as Cluster Autoscaler's providers do, shows the
// instance that was ordered, and that it is deleted, when it is asked as Berth asks.
func TestCheckOfAServerWithACache(t *testing.T) {
	var mu sync.Mutex
	cached := map[string]any{} // answers since the last Refresh, by group
	server := func(_ context.Context, call string, request any, next func() (any, error)) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		switch call {
		case "Refresh":
			clear(cached)
		case "NodeGroupNodes":
			id := request.(*protocol.NodeGroupNodesRequest).GetId()
			if answer, ok := cached[id]; ok {
				return answer, nil
			}
			answer, err := next()
			if err == nil {
				cached[id] = answer
			}
			return answer, err
		}
		return next()
	}
	got, err := checked(t, externalgrpc.Checking{Change: "a"}, twoGroups(), server)
	if want := "ok         NodeGroupDeleteNodes         instance fake://a/1 was created and deleted"; err != nil || !strings.Contains(got, want) {
		t.Errorf("%v, got\n%s\nwant with it\n%s", err, got, want)
	}
}

// TestCheckFindsWhatIsWrong has a server do one thing wrong at a time.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	instead := func(call string, answer any) intercept {
		return func(_ context.Context, is string, _ any, next func() (any, error)) (any, error) {
			if is != call {
				return next()
			}
			if err, ok := answer.(error); ok {
				return nil, err
			}
			return answer, nil
		}
	}
	groups := func(list ...*protocol.NodeGroup) *protocol.NodeGroupsResponse {
		return &protocol.NodeGroupsResponse{NodeGroups: list}
	}
	nodes := func(list ...*protocol.Instance) *protocol.NodeGroupNodesResponse {
		return &protocol.NodeGroupNodesResponse{Instances: list}
	}
	var mu sync.Mutex
	var late, doubled float64 = 0, 2
	for _, x := range []struct {
		name   string
		server intercept
		change string
		want   string
	}{
		{"no groups at all", instead("NodeGroups", status.Error(codes.Unimplemented, "not here")), "", "wrong      NodeGroups                   NodeGroups: Unimplemented: not here; Berth requires this call (in …)"},
		{"a group without an id", instead("NodeGroups", groups(&protocol.NodeGroup{MaxSize: 1})), "", "wrong      NodeGroups                   a group has no id; give each one (in …)"},
		{"a group twice", instead("NodeGroups", groups(&protocol.NodeGroup{Id: "a"}, &protocol.NodeGroup{Id: "a"})), "", `wrong      NodeGroups                   group "a" is listed twice; ids must be unique (in …)`},
		{"a negative minimum", instead("NodeGroups", groups(&protocol.NodeGroup{Id: "a", MinSize: -1})), "", `wrong      NodeGroups                   group "a" has minSize -1; it must not be negative (in …)`},
		{"a minimum above the maximum", instead("NodeGroups", groups(&protocol.NodeGroup{Id: "a", MinSize: 3, MaxSize: 2})), "", `wrong      NodeGroups                   group "a" has minSize 3 and maxSize 2; minSize must be at most maxSize (in …)`},
		{"a negative target", instead("NodeGroupTargetSize", &protocol.NodeGroupTargetSizeResponse{TargetSize: -4}), "", `wrong      NodeGroupTargetSize          group "a": targetSize is -4; it must not be negative (3 calls, the slowest in …)`},
		{"a target of any name", instead("NodeGroupTargetSize", &protocol.NodeGroupTargetSizeResponse{TargetSize: 4}), "", `wrong      NodeGroupTargetSize          group "berth-check-no-such-thing", which does not exist, has targetSize 4; answer NOT_FOUND for a group that does not exist (3 calls, the slowest in …)`},
		{"two groups that claim one node", instead("NodeGroupNodes", nodes(&protocol.Instance{Id: "fake://x"})), "", `wrong      NodeGroupNodes               instance "fake://x" is listed by the groups "a" and "b"; list it once (2 calls, the slowest in …)`},
		{"an instance without an id", instead("NodeGroupNodes", nodes(&protocol.Instance{})), "", `wrong      NodeGroupNodes               group "a": an instance has no id; it must be spec.providerID of its node (2 calls, the slowest in …)`},
		{"no such state", instead("NodeGroupNodes", nodes(&protocol.Instance{Id: "i", Status: &protocol.InstanceStatus{InstanceState: 4}})), "", `wrong      NodeGroupNodes               group "a": instance "i" has instanceState 4; it must be 0 (unspecified), 1 (running), 2 (creating) or 3 (deleting) (2 calls, the slowest in …)`},
		{"no such class", instead("NodeGroupNodes", nodes(&protocol.Instance{Id: "i", Status: &protocol.InstanceStatus{InstanceState: 2, ErrorInfo: &protocol.InstanceErrorInfo{ErrorCode: "E"}}})), "", `wrong      NodeGroupNodes               group "a": instance "i" has instanceErrorClass 0; it must be 1 (out of resources) or 99 (other) (2 calls, the slowest in …)`},
		{"a group for any node", instead("NodeGroupForNode", &protocol.NodeGroupForNodeResponse{NodeGroup: &protocol.NodeGroup{Id: "a"}}), "", `wrong      NodeGroupForNode             node "berth-check-no-such-thing", which does not exist, is in group "a"; answer with an empty id for a node in no group (2 calls, the slowest in …)`},
		{"calls that don't agree", instead("NodeGroupForNode", &protocol.NodeGroupForNodeResponse{NodeGroup: &protocol.NodeGroup{Id: "b"}}), "", `wrong      NodeGroupForNode             instance "fake://a/0" of group "a" is in group "b" by NodeGroupForNode; both calls must agree (2 calls, the slowest in …)`},
		{"a template that is none", instead("NodeGroupTemplateNodeInfo", &protocol.NodeGroupTemplateNodeInfoResponse{}), "", `wrong      NodeGroupTemplateNodeInfo    group "a": the response has no node; it must have a v1.Node in nodeBytes, or answer UNIMPLEMENTED (2 calls, the slowest in …)`},
		{"options that can't be", instead("NodeGroupGetOptions", &protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: &protocol.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 50}}), "", `wrong      NodeGroupGetOptions          group "a": option scaleDownUtilizationThreshold is 50; it must be a ratio, from 0 to 1 (2 calls, the slowest in …)`},
		{"a price that is no number", instead("PricingNodePrice", &protocol.PricingNodePriceResponse{Price: math.NaN()}), "", `wrong      PricingNodePrice             template of group "a": price is NaN; it must be a number of at least 0 (4 calls, the slowest in …)`},
		{"a price that falls with time", func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
			if call == "PricingNodePrice" {
				mu.Lock()
				defer mu.Unlock()
				doubled /= 2
				return &protocol.PricingNodePriceResponse{Price: doubled}, nil
			}
			return next()
		}, "", `wrong      PricingNodePrice             template of group "a": an hour costs 1 and two cost 0.5; two must cost no less (4 calls, the slowest in …)`},
		{"a group that can't grow", nil, "b", `wrong      NodeGroupIncreaseSize        group "b" does not exist, or its targetSize 0 is at its maxSize 0; choose one that can be scaled up`},
		{"a target that rises later", func(_ context.Context, call string, request any, next func() (any, error)) (any, error) {
			answer, err := next()
			if r, ok := answer.(*protocol.NodeGroupTargetSizeResponse); ok && err == nil && request.(*protocol.NodeGroupTargetSizeRequest).GetId() == "a" && late == 0 {
				r.TargetSize = 1
			}
			return answer, err
		}, "a", `wrong      NodeGroupIncreaseSize        group "a": targetSize is 1 after scaling up by one node, and must be 2 when the call returns (in …)`},
		{"an order that never comes", instead("NodeGroupIncreaseSize", &protocol.NodeGroupIncreaseSizeResponse{}), "a", `wrong      NodeGroupIncreaseSize        group "a": targetSize is 1 after scaling up by one node, and must be 2 when the call returns (in …)`},
		{"a deletion that isn't", instead("NodeGroupDeleteNodes", &protocol.NodeGroupDeleteNodesResponse{}), "a", `wrong      NodeGroupDeleteNodes         group "a": targetSize is 2 after one node was deleted, and must be 1 when the call returns (in …)`},
		{"a deletion that is refused", instead("NodeGroupDeleteNodes", status.Error(codes.Unknown, "not mine")), "a", `wrong      NodeGroupDeleteNodes         group "a": NodeGroupDeleteNodes: Unknown: not mine; the request had its ID only, since check knows no nodes (Berth sends labels and annotations, too); delete "fake://a/1" manually if it exists (in …)`},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := checked(t, externalgrpc.Checking{Change: x.change}, twoGroups(), x.server)
			if !errors.Is(err, externalgrpc.ErrWrong) || !strings.Contains(got, x.want+"\n") {
				t.Errorf("%v, got\n%s\nwant with it\n%s", err, got, x.want)
			}
		})
	}
}
