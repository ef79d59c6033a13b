package extender

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file tests extenders against a real HTTP server: each verb with whole nodes and
// with names, what an answer may not say, whom an extender concerns, and what a chain makes
// of several.

// server is an HTTP extender over TLS. It allows the nodes with even numbers, scores nodes
// by their number, binds, and of the candidates for preemption leaves n0 only.
type server struct {
	t     *testing.T
	bound []extenderv1.ExtenderBindingArgs // what it was asked to bind
}

// newServer starts an extender that stops with the test.
func newServer(t *testing.T) (*httptest.Server, *server) {
	t.Helper()
	s := &server{t: t}
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*json.Decoder) any{"filter": s.filter, "prioritize": s.prioritize, "bind": s.bind, "preempt": s.preempt} {
		mux.HandleFunc("POST /x/"+path, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewEncoder(w).Encode(answer(json.NewDecoder(r.Body))); err != nil {
				t.Error(err)
			}
		})
	}
	web := httptest.NewTLSServer(mux)
	t.Cleanup(web.Close)
	return web, s
}

func (s *server) read(d *json.Decoder, into any) {
	if err := d.Decode(into); err != nil {
		s.t.Error(err)
	}
}

// names returns the names of the nodes that the extender was sent, whole or by name.
func names(args *extenderv1.ExtenderArgs) []string {
	if args.NodeNames != nil {
		return *args.NodeNames
	}
	var out []string
	for i := range args.Nodes.Items {
		out = append(out, args.Nodes.Items[i].Name)
	}
	return out
}

func (s *server) filter(d *json.Decoder) any {
	args := extenderv1.ExtenderArgs{}
	s.read(d, &args)
	out := extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{}}
	var kept []string
	for _, n := range names(&args) {
		if strings.HasSuffix(n, "1") || strings.HasSuffix(n, "3") {
			out.FailedNodes[n] = "node is odd"
		} else {
			kept = append(kept, n)
		}
	}
	if args.NodeNames != nil {
		out.NodeNames = &kept
		return out
	}
	out.Nodes = &v1.NodeList{}
	for i := range args.Nodes.Items {
		if slices.Contains(kept, args.Nodes.Items[i].Name) {
			out.Nodes.Items = append(out.Nodes.Items, args.Nodes.Items[i])
		}
	}
	return out
}

// prioritize scores a node that it wasn't asked about, too.
func (s *server) prioritize(d *json.Decoder) any {
	args := extenderv1.ExtenderArgs{}
	s.read(d, &args)
	var out extenderv1.HostPriorityList
	for _, n := range names(&args) {
		out = append(out, extenderv1.HostPriority{Host: n, Score: int64(n[len(n)-1] - '0')})
	}
	return append(out, extenderv1.HostPriority{Host: "nowhere", Score: 10})
}

func (s *server) bind(d *json.Decoder) any {
	args := extenderv1.ExtenderBindingArgs{}
	s.read(d, &args)
	s.bound = append(s.bound, args)
	return extenderv1.ExtenderBindingResult{}
}

func (s *server) preempt(d *json.Decoder) any {
	args := extenderv1.ExtenderPreemptionArgs{}
	s.read(d, &args)
	v := args.NodeNameToMetaVictims["n0"]
	if whole := args.NodeNameToVictims["n0"]; whole != nil {
		v = &extenderv1.MetaVictims{}
		for _, p := range whole.Pods {
			v.Pods = append(v.Pods, &extenderv1.MetaPod{UID: string(p.UID)})
		}
	}
	return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"n0": v}}
}

func caOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func chain(t *testing.T, list ...kubeschedulerv1.Extender) (*Chain, *config.Scheduler) {
	t.Helper()
	cfg := kubeschedulerv1.KubeSchedulerConfiguration{Extenders: list}
	cfg.APIVersion, cfg.Kind = kubeschedulerv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration"
	raw, err := json.Marshal(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := config.Parse(raw, compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewChain(parsed.Extenders, parsed.Profiles[0].Extenders, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c, &parsed
}

// nodes returns n0 to n4 by name.
func nodes(names ...string) []*v1.Node {
	var out []*v1.Node
	for _, n := range names {
		out = append(out, testkit.Node(n).Alloc("cpu", "4", "memory", "8Gi").Obj())
	}
	return out
}

// TestExtenderDecides runs a core whose pods an extender has a say in, against
// a real HTTP server with TLS, with names only and with whole nodes.
func TestExtenderDecides(t *testing.T) {
	for _, cached := range []bool{true, false} {
		web, s := newServer(t)
		c, cfg := chain(t, kubeschedulerv1.Extender{
			URLPrefix: web.URL + "/x", FilterVerb: "filter", PrioritizeVerb: "prioritize", BindVerb: "bind", PreemptVerb: "preempt", Weight: 5,
			EnableHTTPS: true, TLSConfig: &kubeschedulerv1.ExtenderTLSConfig{CAData: caOf(web)}, NodeCacheCapable: cached,
			ManagedResources: []kubeschedulerv1.ExtenderManagedResource{{Name: "example.com/gpu", IgnoredByScheduler: true}},
		})
		schema, profiles := cfg.Build()
		k, err := core.New(schema, core.DefaultConfig(profiles...))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1000, 0)
		all := nodes("n0", "n1", "n2", "n3", "n4")
		var in []step.Input
		for _, n := range all {
			in = append(in, step.NodeSet{Node: n})
		}
		k.Step(now, door.Must(in...)...)
		r := k.Step(now, door.Must(step.PodSet{Pod: testkit.Pod("managed").Req("cpu", "1", "example.com/gpu", "1").Obj()}, step.PodSet{Pod: testkit.Pod("plain").Req("cpu", "1").Obj()})...)
		if len(r.Consults) != 1 || r.Consults[0].Pod.Name != "managed" || len(r.Consults[0].Nodes) != 5 || len(r.Binds) != 1 || r.Binds[0].Name != "plain" {
			t.Fatalf("consults %+v and binds %+v; want the managed pod with five nodes, and the plain one bound meanwhile", r.Consults, r.Binds)
		}
		r = k.Step(now, door.Must(c.Ask(context.Background(), r.Consults[0], all))...)
		if len(r.Binds) != 1 || r.Binds[0].Node != "n4" || !r.Binds[0].Extender {
			t.Fatalf("binds %+v; want the managed pod on n4, by the extender", r.Binds)
		}
		if err := c.Bind(context.Background(), r.Binds[0]); err != nil || len(s.bound) != 1 || s.bound[0].PodName != "managed" {
			t.Errorf("bound %+v, %v", s.bound, err)
		}
		// Where the extender leaves nothing its reasons are told.
		for _, name := range []string{"n0", "n2", "n4"} {
			k.Step(now, door.Must(step.NodeGone{Name: name})...)
		}
		r = k.Step(now, door.Must(step.PodSet{Pod: testkit.Pod("late").Req("example.com/gpu", "1").Obj()})...)
		r = k.Step(now, door.Must(c.Ask(context.Background(), r.Consults[0], nodes("n1", "n3")))...)
		if want := "0/2 nodes are available: 2 node is odd. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."; len(r.Conditions) != 1 || r.Conditions[0].Message != want {
			t.Errorf("conditions %+v, want %q", r.Conditions, want)
		}
		if r = k.Step(now.Add(20*time.Second), door.Must(step.Consulted{})...); len(r.Conditions) != 0 {
			t.Errorf("without another attempt the words became %+v", r.Conditions)
		}
		// A change may help, whatever it is: nobody knows what the extender reads.
		if r = k.Step(now.Add(30*time.Second), door.Must(step.NodeSet{Node: nodes("n6")[0]})...); len(r.Consults) != 1 {
			t.Errorf("after a node came: consults %+v, want one", r.Consults)
		}
	}
}

func TestExtenderPreempts(t *testing.T) {
	s, _ := newServer(t)
	x, err := New(kubeschedulerv1.Extender{URLPrefix: s.URL + "/x", PreemptVerb: "preempt", EnableHTTPS: true}, framework.Extender{})
	if err != nil {
		t.Fatal(err)
	}
	victims := &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: "v"}}}
	got, err := x.Preempt(context.Background(), &extenderv1.ExtenderPreemptionArgs{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"n0": victims, "n1": victims}})
	if err != nil || len(got) != 1 || got["n0"].Pods[0].UID != "v" {
		t.Errorf("got %v, %v; want n0 with its victim", got, err)
	}
	if _, err := x.Preempt(context.Background(), &extenderv1.ExtenderPreemptionArgs{}); err == nil || !strings.Contains(err.Error(), "not among the candidates") {
		t.Errorf("a node that was no candidate: %v", err)
	}
}

// TestExtenderChoosesVictims has an extender leave one node of two for
// preemption, with names only and with whole pods. What it agrees to counts as
// far as it is still so.
func TestExtenderChoosesVictims(t *testing.T) {
	for _, cached := range []bool{true, false} {
		s, _ := newServer(t)
		c, cfg := chain(t, kubeschedulerv1.Extender{
			URLPrefix: s.URL + "/x", PreemptVerb: "preempt", EnableHTTPS: true, TLSConfig: &kubeschedulerv1.ExtenderTLSConfig{CAData: caOf(s)}, NodeCacheCapable: cached,
		})
		for _, gone := range []bool{false, true} {
			schema, profiles := cfg.Build()
			k, err := core.New(schema, core.DefaultConfig(profiles...))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1000, 0)
			all := nodes("n0", "n1")
			in := []step.Input{step.NodeSet{Node: all[0]}, step.NodeSet{Node: all[1]}}
			for _, name := range []string{"n0", "n1"} {
				// What is on n0 costs more, and would not be chosen.
				in = append(in, step.PodSet{Pod: testkit.Pod("on-"+name).Req("cpu", "4").Priority(int32('2' - name[1])).On(name).Obj()})
			}
			k.Step(now, door.Must(in...)...)
			r := k.Step(now, door.Must(step.PodSet{Pod: testkit.Pod("high").Req("cpu", "4").Priority(10).Obj()})...)
			if len(r.Consults) != 1 || len(r.Consults[0].Candidates) != 2 || len(r.Preemptions)+len(r.Nominations) != 0 {
				t.Fatalf("consults %+v, preemptions %+v; want two candidates and nothing done yet", r.Consults, r.Preemptions)
			}
			answer := c.Ask(context.Background(), r.Consults[0], all)
			if gone { // the victim, or rather its place, since the extender was asked
				k.Step(now, door.Must(step.PodGone{UID: "pod-on-n0"}, step.PodSet{Pod: testkit.Pod("other").Req("cpu", "4").Priority(100).On("n0").Obj()})...)
			}
			r = k.Step(now, door.Must(answer)...)
			switch {
			case !gone && (len(r.Preemptions) != 1 || r.Preemptions[0].Name != "on-n0" || len(r.Nominations) != 1 || r.Nominations[0].Node != "n0"):
				t.Errorf("preemptions %+v, nominations %+v; want that on n0", r.Preemptions, r.Nominations)
			case gone && (len(r.Preemptions) != 0 || len(r.Conditions) != 1 || !strings.HasSuffix(r.Conditions[0].Message, "preemption: no candidate node for preemption")):
				t.Errorf("preemptions %+v, conditions %+v; want none, and why", r.Preemptions, r.Conditions)
			}
		}
	}
}

// What an extender may do wrong, and what becomes of the pod.
func TestBadExtenders(t *testing.T) {
	all := nodes("n0", "n1")
	job := step.Consult{UID: "u", Pod: testkit.Pod("p").Obj(), Nodes: []string{"n0", "n1"}}
	serve := func(f http.HandlerFunc) string {
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		return s.URL
	}
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	for _, c := range []struct {
		name, url, want string
	}{
		{"garbage", serve(say("<html>")), "reading the response of extender"},
		{"half an answer", serve(say(`{"NodeNames": ["n0"`)), "reading the response of extender"},
		{"an error", serve(say(`{"Error": "no licence"}`)), "no licence"},
		{"a status", serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }), "code 418"},
		{"a node that doesn't exist", serve(say(`{"NodeNames": ["n7"]}`)), `claims a filtered node "n7" which is not found in the input node list`},
		{"silence", serve(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then is the client's leaving noticed
			<-r.Context().Done()
		}), "calling extender"},
		{"nobody there", "http://127.0.0.1:1", "calling extender"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, ignorable := range []bool{false, true} {
				address := strings.Replace(c.url, "//", "//token-hunter2:hunter2@", 1) + "?key=hunter2&verb="
				ch, _ := chain(t, kubeschedulerv1.Extender{URLPrefix: address, FilterVerb: "f", PrioritizeVerb: "p", Weight: 1, NodeCacheCapable: true,
					HTTPTimeout: metav1.Duration{Duration: 100 * time.Millisecond}, Ignorable: ignorable})
				got := ch.Ask(context.Background(), job, all)
				switch {
				case ignorable && (got.Err != nil || len(got.Nodes) != 2):
					t.Errorf("ignorable: %+v, want both nodes", got)
				case !ignorable && (got.Err == nil || !strings.Contains(got.Err.Error(), c.want)):
					t.Errorf("error %v, want …%s…", got.Err, c.want)
				case got.Err != nil && strings.Contains(got.Err.Error(), "hunter2"):
					t.Errorf("the error tells the extender's password: %v", got.Err)
				}
			}
		})
	}
}

// The failure of an extender is an error of the attempt: the pod is told and
// tried again after a backoff.
func TestFailedConsultIsTriedAgain(t *testing.T) {
	_, cfg := chain(t, kubeschedulerv1.Extender{URLPrefix: "http://127.0.0.1:1", FilterVerb: "f"})
	schema, profiles := cfg.Build()
	k, err := core.New(schema, core.DefaultConfig(profiles...))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	r := k.Step(now, door.Must(step.NodeSet{Node: nodes("n0")[0]}, step.PodSet{Pod: testkit.Pod("p").Obj()})...)
	r = k.Step(now, door.Must(step.Consulted{UID: r.Consults[0].UID, Number: r.Consults[0].Number, Err: fmt.Errorf("no licence")})...)
	if len(r.Conditions) != 1 || r.Conditions[0].Reason != "SchedulerError" {
		t.Errorf("conditions %+v, want SchedulerError", r.Conditions)
	}
	if r = k.Step(now.Add(2 * time.Second)); len(r.Consults) != 0 && len(r.Consults) != 1 {
		t.Errorf("consults %+v", r.Consults)
	} else if len(r.Consults) == 0 {
		t.Error("the pod isn't tried again after its backoff")
	}
	// An answer to an attempt that is over changes nothing.
	if r = k.Step(now.Add(2*time.Second), door.Must(step.PodGone{UID: "pod-p"}, step.Consulted{UID: "pod-p", Nodes: []string{"n0"}})...); len(r.Binds) != 0 {
		t.Errorf("a pod that is gone was bound: %+v", r.Binds)
	}
}

// TestConcerned has two extenders with a resource each: pods of different extenders differ, and
// of those of the same it doesn't matter which resource they ask for.
func TestConcerned(t *testing.T) {
	managing := func(resources ...string) kubeschedulerv1.Extender {
		x := kubeschedulerv1.Extender{URLPrefix: "http://127.0.0.1/x", FilterVerb: "filter"}
		for _, r := range resources {
			x.ManagedResources = append(x.ManagedResources, kubeschedulerv1.ExtenderManagedResource{Name: r})
		}
		return x
	}
	c, _ := chain(t, managing("example.com/gpu", "example.com/tpu"), managing("example.com/disk"))
	for want, resources := range map[string][]string{
		"":     {"cpu"},
		"0 ":   {"example.com/gpu"},
		"1 ":   {"example.com/disk"},
		"0 1 ": {"example.com/disk", "example.com/tpu"},
	} {
		var requests []string
		for _, r := range resources {
			requests = append(requests, r, "1")
		}
		if got := c.Concerned(testkit.Pod("p").Req(requests...).Obj()); got != want {
			t.Errorf("a pod with %v: concerned are %q, want %q", resources, got, want)
		}
	}
}
