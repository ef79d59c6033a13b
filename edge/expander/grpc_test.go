package expander

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/peers"
	"github.com/berthproject/berth/internal/test/testkit"
)

var schema = cluster.NewSchema()

func group(id string) *cluster.NodeGroup {
	return &cluster.NodeGroup{ID: id, Template: schema.ParseNode(testkit.Node(id+"-template").Alloc("cpu", "4", "memory", "16Gi").Label("shape", id).Obj(), id)}
}

// offer returns an option of one node for each group.
func offer(ids ...string) (options []expander.Option) {
	for _, id := range ids {
		options = append(options, expander.Option{Group: group(id), Nodes: 1})
	}
	return options
}

// ids returns the groups' IDs, separated by spaces.
func ids(options []expander.Option) string {
	var out []string
	for _, o := range options {
		out = append(out, o.Group.ID)
	}
	return strings.Join(out, " ")
}

// client returns an expander that asks a server, and what it logs.
func client(t *testing.T, address, cert string) (*GRPC, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	g, err := NewGRPC(t.Context(), address, cert, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return g, &log
}

// TestTheServerNarrowsOptionsDown has a server that is offered a, b and c name groups.
func TestTheServerNarrowsOptionsDown(t *testing.T) {
	for _, x := range []struct {
		name   string
		names  []string
		err    error
		want   string
		warned string
	}{
		{name: "one", names: []string{"b"}, want: "b"},
		{name: "two, in their order here", names: []string{"c", "a"}, want: "a c"},
		{name: "one twice counts once", names: []string{"b", "b"}, want: "b"},
		{name: "all", names: []string{"a", "b", "c"}, want: "a b c"},
		{name: "none: all are forbidden", want: ""},
		{name: "one that wasn't offered is left out", names: []string{"x", "b"}, want: "b", warned: "a node group that is not among the given options"},
		{name: "none of those that were offered", names: []string{"x", "y"}, want: "a b c", warned: "returned none of the given options"},
		{name: "a group without a name", names: []string{""}, want: "a b c", warned: "returned none of the given options"},
		{name: "an error", err: errors.New("out of order"), want: "a b c", warned: "out of order"},
	} {
		t.Run(x.name, func(t *testing.T) {
			address, cert := peers.ServeExpander(t, func(context.Context, protoreflect.Message) ([]string, error) { return x.names, x.err })
			g, log := client(t, address, cert)
			if got := ids(g.Best(&expander.Round{Request: 1}, offer("a", "b", "c"))); got != x.want {
				t.Errorf("left are %q, want %q", got, x.want)
			}
			if got := log.String(); strings.Contains(got, "WARN") != (x.warned != "") || !strings.Contains(got, x.warned) {
				t.Errorf("logged is %q, want a warning with %q", got, x.warned)
			}
		})
	}
}

// TestTheServerLearnsWhatItNeeds reads what a server gets: by option the group, the number
// of nodes and the pods, and for each group, similar ones included, what a new node of it
// looks like, with a capacity. It is given five seconds.
func TestTheServerLearnsWhatItNeeds(t *testing.T) {
	var got []string
	var limit time.Duration
	address, cert := peers.ServeExpander(t, func(ctx context.Context, request protoreflect.Message) ([]string, error) {
		if deadline, ok := ctx.Deadline(); ok {
			limit = time.Until(deadline)
		}
		options := peers.Value(request, "options").List()
		for i := range options.Len() {
			o := options.Get(i).Message()
			var names []string
			pods := peers.Value(o, "podBytes").List()
			for k := range pods.Len() {
				var pod v1.Pod
				if err := pod.Unmarshal(pods.Get(k).Bytes()); err != nil {
					return nil, err
				}
				names = append(names, fmt.Sprintf("%s/%s cpu %s", pod.Namespace, pod.Name, pod.Spec.Containers[0].Resources.Requests.Cpu()))
			}
			got = append(got, fmt.Sprintf("%d of %s for %v: %s", peers.Value(o, "nodeCount").Int(), peers.Value(o, "nodeGroupId"), names, peers.Value(o, "debug")))
		}
		var nodes []string
		var err error
		peers.Value(request, "nodeBytesMap").Map().Range(func(key protoreflect.MapKey, raw protoreflect.Value) bool {
			var node v1.Node
			err = errors.Join(err, node.Unmarshal(raw.Bytes()))
			nodes = append(nodes, fmt.Sprintf("%s: %s of shape %s with cpu %s of %s", key, node.Name, node.Labels["shape"], node.Status.Allocatable.Cpu(), node.Status.Capacity.Cpu()))
			return true
		})
		slices.Sort(nodes)
		got = append(got, nodes...)
		return []string{"a"}, err
	})
	g, log := client(t, address, cert)
	one := schema.ParsePod(testkit.Pod("one").Req("cpu", "1").Obj())
	two := schema.ParsePod(testkit.Pod("two").Req("cpu", "2").Obj())
	options := offer("a", "b")
	options[0].Nodes, options[0].Pods, options[0].Wasted = 2, expander.Pods{{one, two}}, 0.5
	options[1].Pods, options[1].Similar = expander.Pods{{two}}, []expander.Share{{Group: group("c"), Nodes: 1}}
	best := g.Best(&expander.Round{Request: 1}, options)
	want := []string{
		"2 of a for [default/one cpu 1 default/two cpu 2]: 2 pod(s) on 2 node(s), 25 % of cpu and memory unused",
		"1 of b for [default/two cpu 2]: 1 pod(s) on 1 node(s), 0 % of cpu and memory unused",
		"a: a-template of shape a with cpu 4 of 4",
		"b: b-template of shape b with cpu 4 of 4",
		"c: c-template of shape c with cpu 4 of 4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the server has read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if limit <= 4*time.Second || limit > 5*time.Second {
		t.Errorf("the server was given %s, want 5s", limit)
	}
	if len(best) != 1 || best[0].Nodes != 2 || best[0].Pods.Len() != 2 || log.Len() > 0 {
		t.Errorf("left is %+v, logged %q; want the option a as it was offered", best, log)
	}
}

// TestAServerThatHangsIsAskedOncePerPlan has a server never answer: all options stay, in
// all rounds of the plan after one call. For the next plan it is asked again.
func TestAServerThatHangsIsAskedOncePerPlan(t *testing.T) {
	calls := make(chan struct{}, 10)
	var answers atomic.Bool
	address, cert := peers.ServeExpander(t, func(ctx context.Context, _ protoreflect.Message) ([]string, error) {
		calls <- struct{}{}
		if !answers.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []string{"b"}, nil
	})
	g, log := client(t, address, cert)
	// Not so short that the call ends before it has reached the server.
	g.timeout = 500 * time.Millisecond
	for round := range 3 {
		if got := ids(g.Best(&expander.Round{Request: 5, Number: round}, offer("a", "b"))); got != "a b" {
			t.Errorf("round %d: left are %q, want both", round, got)
		}
	}
	if n := len(calls); n != 1 {
		t.Errorf("the server was called %d times for one plan, want once", n)
	}
	if got := strings.Count(log.String(), "DeadlineExceeded"); got != 1 {
		t.Errorf("logged is %q; want one warning that the deadline was exceeded", log)
	}
	answers.Store(true)
	g.timeout = callTimeout
	if got := ids(g.Best(&expander.Round{Request: 6}, offer("a", "b"))); got != "b" {
		t.Errorf("for the next plan left are %q, want b", got)
	}
}

// TestOnlyTheServerWithTheCertificateIsAsked calls a server that has another certificate
// than the one given, and one that is gone: all options stay.
func TestOnlyTheServerWithTheCertificateIsAsked(t *testing.T) {
	asked := false
	address, _ := peers.ServeExpander(t, func(context.Context, protoreflect.Message) ([]string, error) { asked = true; return []string{"a"}, nil })
	_, other := peers.Certificate(t)
	for what, address := range map[string]string{"certificate": address, "connection refused": "127.0.0.1:1"} {
		g, log := client(t, address, other)
		if got := ids(g.Best(&expander.Round{Request: 1}, offer("a", "b"))); got != "a b" || asked {
			t.Errorf("left are %q, and the server was asked: %t; want both options and no call", got, asked)
		}
		if got := log.String(); !strings.Contains(got, "WARN") || !strings.Contains(got, what) {
			t.Errorf("logged is %q, want a warning with %q", got, what)
		}
	}
}

// TestWhatCannotBeUsedIsRefused makes expanders of certificates that can't be read.
func TestWhatCannotBeUsedIsRefused(t *testing.T) {
	for _, path := range []string{"", "nowhere.pem", "grpc_test.go"} {
		if _, err := NewGRPC(t.Context(), "127.0.0.1:1", path, slog.Default()); err == nil || !strings.Contains(err.Error(), "--grpc-expander-cert") {
			t.Errorf("with the certificate %q the error is %v, want one that names --grpc-expander-cert", path, err)
		}
	}
}

// TestAnAnswerThatIsNoMessageLeavesAllOptions reads answers that are cut off, and one with
// fields that the protocol doesn't have.
func TestAnAnswerThatIsNoMessageLeavesAllOptions(t *testing.T) {
	option := appendBytes(nil, optionGroup, []byte("a"))
	whole := appendBytes(nil, responseOptions, option)
	for cut := 1; cut < len(whole); cut++ {
		if got, err := decodeResponse(whole[:cut]); err == nil {
			t.Errorf("%d of %d bytes are read as %q, want an error", cut, len(whole), got)
		}
	}
	more := appendBytes([]byte{9 << 3, 1}, 8, []byte("new")) // a number and a string
	got, err := decodeResponse(append(slices.Clone(more), appendBytes(nil, responseOptions, append(option, more...))...))
	if err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("with fields that aren't known the answer is read as %q and %v, want a", got, err)
	}
}
