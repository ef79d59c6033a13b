package externalgrpc_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
	"github.com/berthproject/berth/internal/test/testkit"
)

// long is a deadline that no call of a test meets.
const long = time.Minute

// TestGroupsComeThroughAsTheyAre sends what the contract of providers has through a server and
// its client.
func TestGroupsComeThroughAsTheyAre(t *testing.T) {
	ratio, daemons := 0.75, true
	want := []nodegroup.Group{
		group("a", func(g *nodegroup.Group) {
			g.Min, g.Target = 1, 2
			g.Instances = []nodegroup.Instance{
				{ID: "fake://a/0"}, {ID: "fake://a/1", Failed: "QUOTA: none left", Class: nodegroup.OutOfResources, Code: "QUOTA"}, {ID: "fake://a/2", Failed: "Other: broken", Code: "Other"},
			}
		}),
		group("b", func(g *nodegroup.Group) {
			g.Options = &cluster.GroupOptions{
				UtilizationThreshold: &ratio, GPUUtilizationThreshold: allDefaults().GPUUtilizationThreshold, IgnoreDaemonSetsUtilization: &daemons, ZeroOrMax: true,
				UnneededTime: &metav1.Duration{Duration: time.Hour}, UnreadyTime: allDefaults().UnreadyTime, ProvisionTime: &metav1.Duration{Duration: time.Minute},
				StartupTime: &metav1.Duration{Duration: 3 * time.Minute},
			}
		}),
	}
	p := newFakeProvider(want...)
	p.groups["a"].Instances[1].Failed, p.groups["a"].Instances[2].Failed = "none left", "broken"
	p.groups["a"].Instances[2].Code = "" // the class is its code then
	b := newBed(t, long, p, nil)
	for range 2 {
		got := b.list(t)
		for i := range got {
			if x := got[i].Template; x == nil || !reflect.DeepEqual(x.Labels, want[i].Template.Labels) || x.Status.Allocatable.Cpu().String() != "4" {
				t.Errorf("the template of %s is %v", got[i].ID, x)
			}
			got[i].Template = want[i].Template
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", got, want)
		}
	}
	if log := b.log.take(); log != "" {
		t.Errorf("the client has logged %q", log)
	}
}

// TestChangesComeThrough makes the calls that change a group, and reads it again.
func TestChangesComeThrough(t *testing.T) {
	p := newFakeProvider(group("g"))
	b := newBed(t, long, p, nil)
	b.list(t)
	named := testkit.Node("n0").Label("group", "g").Obj()
	named.Spec.ProviderID = "fake://g/0"
	b.GroupOf(named)
	for _, x := range []struct {
		do   func() error
		want int
	}{
		{func() error { return b.IncreaseSize(t.Context(), "g", 3) }, 3},
		{func() error { return b.DecreaseTargetSize(t.Context(), "g", 1) }, 2},
		{func() error {
			return b.DeleteNodes(t.Context(), "g", []nodegroup.Instance{{Node: "n0"}, {ID: "fake://g/1"}})
		}, 0},
	} {
		if err := x.do(); err != nil {
			t.Error(err)
		}
		if got := b.list(t)[0].Target; got != x.want {
			t.Errorf("after %q the target is %d, want %d", p.calls, got, x.want)
		}
	}
	if want := []string{"increase by 3 g", "decrease by 1 g", "delete [{fake://g/0 n0  Other } {fake://g/1   Other }] g"}; !slices.Equal(p.calls, want) {
		t.Errorf("the provider was told %q, want %q", p.calls, want)
	}
}

// TestAnErrorHasItsClass: RESOURCE_EXHAUSTED says that nothing was ordered, any other code leaves
// it open.
func TestAnErrorHasItsClass(t *testing.T) {
	p := newFakeProvider(group("g"))
	b := newBed(t, long, p, nil)
	for _, x := range []struct {
		err   error
		class nodegroup.ErrorClass
		want  string
	}{
		{&nodegroup.Error{Class: nodegroup.OutOfResources, Message: "the quota is used up"}, nodegroup.OutOfResources,
			`increasing node group "g" by 1: NodeGroupIncreaseSize: ResourceExhausted: the quota is used up`},
		{errors.New("the cloud is away"), nodegroup.OtherError, `increasing node group "g" by 1: NodeGroupIncreaseSize: Unknown: the cloud is away`},
	} {
		p.fails["increase g"] = x.err
		err := b.IncreaseSize(t.Context(), "g", 1)
		if err == nil || err.Error() != x.want || nodegroup.ClassOf(err) != x.class {
			t.Errorf("%v: got %v of class %s, want %s of class %s", x.err, err, nodegroup.ClassOf(err), x.want, x.class)
		}
	}
	for _, delta := range []int{0, -1, math.MaxInt32 + 1} {
		if b.IncreaseSize(t.Context(), "g", delta) == nil || b.DecreaseTargetSize(t.Context(), "g", delta) == nil {
			t.Errorf("a group was changed by %d, which the protocol can't say", delta)
		}
	}
}

// TestOptionalCallsAreAskedForOnce has a server that implements nothing it needn't.
func TestOptionalCallsAreAskedForOnce(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	optional := []string{"NodeGroupTemplateNodeInfo", "NodeGroupGetOptions", "PricingNodePrice", "GPULabel", "Refresh"}
	b := newBed(t, long, newFakeProvider(group("a"), group("b")), func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[call]++
		if slices.Contains(optional, call) {
			return nil, status.Error(codes.Unimplemented, "not here")
		}
		return next()
	})
	for range 3 {
		for _, g := range b.list(t) {
			if g.Unreadable != "" || g.Options != nil || g.Price != 0 || g.Template != nil || g.TemplateError != "NodeGroupTemplateNodeInfo: the server does not implement it; the group can't be scaled up from zero" {
				t.Errorf("got %+v", g)
			}
		}
	}
	want := map[string]int{"Refresh": 1, "NodeGroups": 3, "NodeGroupTargetSize": 6, "NodeGroupNodes": 6, "NodeGroupTemplateNodeInfo": 2, "NodeGroupGetOptions": 2}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("the server was asked %v, want %v", asked, want)
	}
	if log := b.log.take(); log != "" {
		t.Errorf("the client has logged %q", log)
	}
}

// TestWhatFailsOfOneGroupIsSaidOfIt has each call of group b fail in turn.
func TestWhatFailsOfOneGroupIsSaidOfIt(t *testing.T) {
	var failing atomic.Value // the call of group b that fails
	failing.Store("")
	b := newBed(t, long, newFakeProvider(group("a"), group("b"), group("c")), func(_ context.Context, call string, request any, next func() (any, error)) (any, error) {
		id := ""
		switch r := request.(type) {
		case interface{ GetId() string }:
			id = r.GetId()
		case *protocol.PricingNodePriceRequest:
			id = r.GetNode().GetLabels()["group"]
		}
		if call == failing.Load() && (id == "b" || id == "") {
			return nil, status.Error(codes.Internal, "broken")
		}
		return next()
	})
	b.list(t)
	for _, x := range []struct {
		call       string
		unreadable string
		template   string
		log        string
	}{
		{"NodeGroupTargetSize", "NodeGroupTargetSize: Internal: broken", "", ""},
		{"NodeGroupNodes", "NodeGroupNodes: Internal: broken", "", ""},
		{"NodeGroupTemplateNodeInfo", "", "NodeGroupTemplateNodeInfo: Internal: broken", ""},
		{"NodeGroupGetOptions", "", "", `msg="external provider problem" about="NodeGroupGetOptions of b" err="NodeGroupGetOptions: Internal: broken; the last known options are used"`},
		{"PricingNodePrice", "", "", `msg="external provider problem" about="PricingNodePrice of b" err="PricingNodePrice: Internal: broken; the last known price is used"`},
		{"Refresh", "", "", `msg="external provider problem" about=Refresh err="Refresh: Internal: broken"`},
	} {
		failing.Store(x.call)
		b.list(t)
		groups := b.list(t) // the second is logged no more
		for _, g := range groups {
			isB := g.ID == "b"
			if isB && (g.Unreadable != x.unreadable || g.TemplateError != x.template || x.unreadable == "" && g.Price != 0.25) || !isB && (g.Unreadable != "" || g.TemplateError != "" || g.Price != 0.25) {
				t.Errorf("%s fails: group %s is unreadable for %q, its template for %q, its price %v", x.call, g.ID, g.Unreadable, g.TemplateError, g.Price)
			}
		}
		if log := b.log.take(); log != x.log || len(groups) != 3 {
			t.Errorf("%s fails: %d groups, logged %q, want 3 and %q", x.call, len(groups), log, x.log)
		}
		failing.Store("")
		b.list(t)
		b.log.take()
	}
	failing.Store("NodeGroups")
	if groups, err := b.Groups(t.Context()); err == nil || err.Error() != "NodeGroups: Internal: broken" {
		t.Errorf("NodeGroups fails: got %v, %v", groups, err)
	}
}

// TestAServerThatHangsHoldsUpItsOwnGroupOnly has one call of a group never answered.
func TestAServerThatHangsHoldsUpItsOwnGroupOnly(t *testing.T) {
	hang := func(call string) intercept {
		return func(ctx context.Context, is string, request any, next func() (any, error)) (any, error) {
			if r, ok := request.(interface{ GetId() string }); is == call && (!ok || r.GetId() == "b") {
				<-ctx.Done() // the server may notice the deadline a moment before the client
				return nil, ctx.Err()
			}
			return next()
		}
	}
	// Which end notices the deadline first is a matter of chance, and so is the middle of the text.
	const remedy = "; the server is too slow, or hangs; whether it executed the call is unknown. grpc_timeout sets the timeout of a call"
	tooLate := func(call, text string) bool {
		return strings.HasPrefix(text, call+": DeadlineExceeded: ") && strings.HasSuffix(text, remedy)
	}
	b := newBed(t, 2*time.Second, newFakeProvider(group("a"), group("b")), hang("NodeGroupTargetSize"))
	got := b.list(t)
	if got[0].Unreadable != "" || got[0].Template == nil || !tooLate("NodeGroupTargetSize", got[1].Unreadable) {
		t.Errorf("got %+v", got)
	}
	b = newBed(t, 200*time.Millisecond, newFakeProvider(group("a"), group("b")), hang("NodeGroups"))
	if groups, err := b.Groups(t.Context()); err == nil || !tooLate("NodeGroups", err.Error()) {
		t.Errorf("NodeGroups hangs: got %v, %v", groups, err)
	}
}

// TestAnAnswerAfterTheDeadlineLeavesTheOrderInDoubt: the order was carried out, and the next list
// tells.
func TestAnAnswerAfterTheDeadlineLeavesTheOrderInDoubt(t *testing.T) {
	p := newFakeProvider(group("g"))
	b := newBed(t, 200*time.Millisecond, p, func(ctx context.Context, call string, _ any, next func() (any, error)) (any, error) {
		answer, err := next()
		if call == "NodeGroupIncreaseSize" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return answer, err
	})
	err := b.IncreaseSize(t.Context(), "g", 2)
	if err == nil || nodegroup.ClassOf(err) != nodegroup.OtherError || !nodegroup.OutcomeUnknown(err) || !strings.Contains(err.Error(), "whether it executed the call is unknown") {
		t.Errorf("got %v of class %s", err, nodegroup.ClassOf(err))
	}
	if got := b.list(t)[0].Target; got != 2 {
		t.Errorf("the next list has a target of %d, want 2", got)
	}
}

// TestOnlyTheServersOwnWordIsARefusal: a call that may have been carried out has an unknown outcome.
func TestOnlyTheServersOwnWordIsARefusal(t *testing.T) {
	var answer codes.Code
	b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
		if call == "NodeGroupDeleteNodes" {
			return nil, status.Error(answer, "no")
		}
		return next()
	})
	unknown := []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable}
	for answer = codes.Canceled; answer <= codes.Unauthenticated; answer++ {
		err := b.DeleteNodes(t.Context(), "g", []nodegroup.Instance{{ID: "i"}})
		if got := nodegroup.OutcomeUnknown(err); err == nil || got != slices.Contains(unknown, answer) {
			t.Errorf("%s: got %v, of unknown outcome: %t", answer, err, got)
		}
	}
}

// TestADeletionOfManyNodesHasMoreTime, since servers delete one instance after the other.
func TestADeletionOfManyNodesHasMoreTime(t *testing.T) {
	for _, x := range []struct {
		timeout time.Duration
		nodes   int
		want    time.Duration
	}{
		{5 * time.Second, 0, 5 * time.Second}, {5 * time.Second, 1, 5 * time.Second}, {5 * time.Second, 14, 70 * time.Second},
		{5 * time.Second, 1000, 2 * time.Minute}, {3 * time.Minute, 2, 3 * time.Minute},
	} {
		if got := externalgrpc.DeletionTimeout(x.timeout, x.nodes); got != x.want {
			t.Errorf("%d nodes with a timeout of %s: got %s, want %s", x.nodes, x.timeout, got, x.want)
		}
	}
}

// TestTwoGroupsThatClaimOneNode: the first by ID has it, which is said once.
func TestTwoGroupsThatClaimOneNode(t *testing.T) {
	both := func(g *nodegroup.Group) { g.Instances = []nodegroup.Instance{{ID: "fake://x"}, {ID: "fake://" + g.ID}} }
	b := newBed(t, long, newFakeProvider(group("a", both), group("b", both)), nil)
	n := testkit.Node("x").Obj()
	n.Spec.ProviderID = "fake://x"
	for range 2 {
		groups := b.list(t)
		if b.GroupOf(n) != "a" || len(groups[0].Instances) != 2 || !slices.Equal(groups[1].Instances, []nodegroup.Instance{{ID: "fake://b"}}) {
			t.Errorf("the node is of %q, the instances are %v and %v", b.GroupOf(n), groups[0].Instances, groups[1].Instances)
		}
	}
	want := `msg="external provider problem" about=NodeGroupNodes err="instance \"fake://x\" is listed by the groups \"a\" and \"b\"; it is counted in the first by ID"`
	if log := b.log.take(); log != want {
		t.Errorf("logged %q, want %q", log, want)
	}
}

// TestANodeThatNoGroupListsIsAskedFor with the next list, and then once a minute. One of no group
// is asked for as often, and one whose group isn't listed is in none.
func TestANodeThatNoGroupListsIsAskedFor(t *testing.T) {
	var asked atomic.Int32
	b := newBed(t, long, newFakeProvider(group("a", func(g *nodegroup.Group) { g.Instances = []nodegroup.Instance{{ID: "fake://listed"}} })),
		func(_ context.Context, call string, request any, next func() (any, error)) (any, error) {
			if call != "NodeGroupForNode" {
				return next()
			}
			asked.Add(1)
			id := request.(*protocol.NodeGroupForNodeRequest).GetNode().GetLabels()["group"]
			return &protocol.NodeGroupForNodeResponse{NodeGroup: &protocol.NodeGroup{Id: id}}, nil
		})
	listed, claimed, alone, stray := testkit.Node("l").Obj(), testkit.Node("n").Label("group", "a").Obj(), testkit.Node("m").Obj(), testkit.Node("s").Label("group", "zzz").Obj()
	listed.Spec.ProviderID = "fake://listed"
	for i, x := range []struct {
		after time.Duration
		want  []string
		asked int32
	}{
		{0, []string{"", "", "", ""}, 0},
		{0, []string{"a", "a", "", ""}, 3},
		{59 * time.Second, []string{"a", "a", "", ""}, 3},
		{time.Second, []string{"a", "a", "", ""}, 6},
	} {
		b.now = b.now.Add(x.after)
		if i > 0 {
			b.list(t)
		}
		var got []string
		for _, n := range []*v1.Node{listed, claimed, alone, stray} {
			got = append(got, b.GroupOf(n))
		}
		if !slices.Equal(got, x.want) || asked.Load() != x.asked {
			t.Errorf("list %d: the nodes are of %q after %d questions, want %q after %d", i, got, asked.Load(), x.want, x.asked)
		}
	}
	want := `msg="external provider problem" about=NodeGroupForNode err="NodeGroupForNode: node s is in group \"zzz\", which NodeGroups does not list; until it does, the node counts as in no group"`
	if log := b.log.take(); !strings.HasPrefix(log, want) {
		t.Errorf("logged %q, want %q", log, want)
	}
	another := claimed.DeepCopy() // a new machine with the old one's name
	another.Spec.ProviderID = "fake://another"
	if got := b.GroupOf(another); got != "" {
		t.Errorf("a new machine with the name of one of group a is of %q before it was asked for", got)
	}
}

// TestPricesThatCantBeAreLeftOut: the last good one holds.
func TestPricesThatCantBeAreLeftOut(t *testing.T) {
	var price atomic.Value
	b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
		if call == "PricingNodePrice" {
			return &protocol.PricingNodePriceResponse{Price: price.Load().(float64)}, nil
		}
		return next()
	})
	for _, x := range []struct{ price, want float64 }{{math.NaN(), 0}, {1.5, 1.5}, {-1, 1.5}, {math.Inf(1), 1.5}, {math.Inf(-1), 1.5}, {0, 0}} {
		price.Store(x.price)
		if got := b.list(t)[0].Price; got != x.want {
			t.Errorf("price %v: got %v, want %v", x.price, got, x.want)
		}
	}
	if log := b.log.take(); !strings.Contains(log, "PricingNodePrice: NaN; it must be a number of at least 0; the last known price is used") {
		t.Errorf("logged %q", log)
	}
}

// TestInstancesOnTheirWayOutAreNotCountedOn, but their nodes are of the group still.
func TestInstancesOnTheirWayOutAreNotCountedOn(t *testing.T) {
	state := func(id string, s protocol.InstanceStatus_InstanceState, code string) *protocol.Instance {
		return &protocol.Instance{Id: id, Status: &protocol.InstanceStatus{InstanceState: s, ErrorInfo: &protocol.InstanceErrorInfo{ErrorCode: code, InstanceErrorClass: 99}}}
	}
	b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
		if call == "NodeGroupNodes" {
			return &protocol.NodeGroupNodesResponse{Instances: []*protocol.Instance{
				state("i1", protocol.InstanceStatus_instanceRunning, ""), state("i2", protocol.InstanceStatus_instanceDeleting, ""),
				state("i3", protocol.InstanceStatus_instanceCreating, "E"), state("i4", protocol.InstanceStatus_instanceRunning, "E"), {Id: "i5"}, {},
			}}, nil
		}
		return next()
	})
	if got, want := b.list(t)[0].Instances, []nodegroup.Instance{{ID: "i1"}, {ID: "i3", Failed: "E", Code: "E"}, {ID: "i4"}, {ID: "i5"}}; !slices.Equal(got, want) {
		t.Errorf("got instances %v, want %v", got, want)
	}
	n := testkit.Node("n").Obj()
	if n.Spec.ProviderID = "i2"; b.GroupOf(n) != "g" {
		t.Errorf("the node of an instance that is being deleted is of %q, want g", b.GroupOf(n))
	}
}

// TestOlderServersAreUnderstood has one that knows the fields of before only.
func TestOlderServersAreUnderstood(t *testing.T) {
	b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, call string, request any, next func() (any, error)) (any, error) {
		answer, err := next()
		switch x := answer.(type) {
		case *protocol.NodeGroupTemplateNodeInfoResponse:
			x.NodeBytes = nil
		case *protocol.PricingNodePriceResponse:
			if r := request.(*protocol.PricingNodePriceRequest); r.GetStartLegacy() == nil || r.GetEndLegacy() == nil {
				return nil, status.Error(codes.InvalidArgument, "request fields were nil")
			}
		case *protocol.NodeGroupAutoscalingOptionsResponse:
			d := request.(*protocol.NodeGroupAutoscalingOptionsRequest).GetDefaults()
			if d.GetUnneededLegacy().GetNanoseconds() != int64(10*time.Minute) {
				return nil, status.Error(codes.InvalidArgument, "no defaults")
			}
			x.NodeGroupAutoscalingOptions = &protocol.NodeGroupAutoscalingOptions{
				ScaleDownUtilizationThreshold: 0.25, ScaleDownGpuUtilizationThreshold: 0.25,
				UnneededLegacy: &protocol.LegacyDuration{Nanoseconds: int64(time.Hour)}, UnreadyLegacy: d.GetUnreadyLegacy(), ProvisionLegacy: &protocol.LegacyDuration{},
			}
		}
		return answer, err
	})
	g := b.list(t)[0]
	if g.Template == nil || g.Price != 0.25 || g.Options == nil || *g.Options.UtilizationThreshold != 0.25 || g.Options.UnneededTime.Duration != time.Hour || g.Options.UnreadyTime.Duration != 20*time.Minute || g.Options.ProvisionTime != nil || g.Options.StartupTime != nil {
		t.Errorf("got %+v, options %+v; logged %s", g, g.Options, b.log.take())
	}
}

// TestAServerThatComesBackIsAskedAgain for what it had left out: it may be another version.
func TestAServerThatComesBackIsAskedAgain(t *testing.T) {
	var away, asked atomic.Int32
	b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
		switch {
		case call == "NodeGroups" && away.Load() == 1:
			return nil, status.Error(codes.Unavailable, "going down")
		case call == "NodeGroupGetOptions":
			asked.Add(1)
			return nil, status.Error(codes.Unimplemented, "not here")
		}
		return next()
	})
	b.list(t)
	b.list(t)
	away.Store(1)
	if _, err := b.Groups(t.Context()); err == nil {
		t.Error("the server is away, and the groups were read")
	}
	away.Store(0)
	if b.list(t); asked.Load() != 2 {
		t.Errorf("the server was asked for options %d times, want once before it was away and once after", asked.Load())
	}
}

// TestTwoGroupsOfOneName: the first counts.
func TestTwoGroupsOfOneName(t *testing.T) {
	b := newBed(t, long, newFakeProvider(group("g")), func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
		if call == "NodeGroups" {
			return &protocol.NodeGroupsResponse{NodeGroups: []*protocol.NodeGroup{{Id: "g", MaxSize: 3}, {Id: "g", MaxSize: 5}, {MaxSize: 1}}}, nil
		}
		return next()
	})
	got := b.list(t)
	if len(got) != 2 || got[0].ID != "" || got[1].Max != 3 {
		t.Errorf("got %+v", got)
	}
	if log := b.log.take(); !strings.Contains(log, `NodeGroups lists \"g\" twice; IDs must be unique, and the first is used`) {
		t.Errorf("logged %q", log)
	}
}

// TestCleanupSaysThatTheClientGoes, also to a server that doesn't care.
func TestCleanupSaysThatTheClientGoes(t *testing.T) {
	var calls []string
	var answer error
	b := newBed(t, long, newFakeProvider(), func(_ context.Context, call string, _ any, next func() (any, error)) (any, error) {
		calls = append(calls, call)
		if answer != nil {
			return nil, answer
		}
		return next()
	})
	for _, x := range []struct {
		answer error
		want   string
	}{{nil, ""}, {status.Error(codes.Unimplemented, "not here"), ""}, {status.Error(codes.Internal, "broken"), "Cleanup: Internal: broken"}} {
		answer = x.answer
		if err := b.Cleanup(t.Context()); err == nil != (x.want == "") || err != nil && err.Error() != x.want {
			t.Errorf("%v: got %v, want %q", x.answer, err, x.want)
		}
	}
	if want := []string{"Cleanup", "Cleanup", "Cleanup"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}
