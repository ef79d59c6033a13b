package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies that no answer of an extender harms Berth: what can't be meant is an
// error of the extender, and what it says counts only as far as it is true of the cluster.

// said is an HTTP transport that gives one answer to all, and keeps what was sent last.
type said struct {
	answer string
	sent   []byte
}

func (s *said) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if s.sent, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	if r.ContentLength != int64(len(s.sent)) {
		return nil, fmt.Errorf("%d bytes are announced and %d sent", r.ContentLength, len(s.sent))
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(s.answer)), Request: r}, nil
}

// world is a core beside one extender whose answers a test chooses. On n0 and n1 are pods of
// a low priority, and n0 has one of a high priority beside it; n2 to n4 are empty.
type world struct {
	t      testing.TB
	driver *drive.Driver
	chain  *Chain
	said   *said
	now    time.Time
	inbox  []step.Input
	nodes  []*v1.Node
	drive.Unanswered
	preempted []string
	bound     []string
	err       error // of the extender, the last time it was asked
}

// Consult implements drive.Workers.
func (w *world) Consult(question step.Consult, answer func(step.Consulted)) {
	a := w.chain.Ask(context.Background(), question, w.nodes)
	w.err = a.Err
	answer(a)
}

// Preempt implements drive.Workers: victims that were told are gone.
func (w *world) Preempt(victim step.Preemption, done func(error)) {
	w.preempted = append(w.preempted, victim.Name)
	w.inbox = append(w.inbox, step.PodGone{UID: victim.UID})
	done(nil)
}

// Nominate implements drive.Workers.
func (w *world) Nominate(_ step.Nomination, done func(error)) { done(nil) }

// Bind implements drive.Workers.
func (w *world) Bind(bind step.Bind, done func(error)) {
	w.bound = append(w.bound, bind.Name+" to "+bind.Node)
	done(nil)
}

func newWorld(t testing.TB, x *kubeschedulerv1.Extender, answer string) *world {
	t.Helper()
	cfg := kubeschedulerv1.KubeSchedulerConfiguration{Extenders: []kubeschedulerv1.Extender{*x}}
	cfg.APIVersion, cfg.Kind = kubeschedulerv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration"
	raw, err := json.Marshal(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := config.Parse(raw, compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, said: &said{answer: answer}, now: time.Unix(1000, 0), nodes: nodes("n0", "n1", "n2", "n3", "n4")}
	if w.chain, err = NewChain(parsed.Extenders, parsed.Profiles[0].Extenders, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	w.chain.extenders[0].client = &http.Client{Transport: w.said}
	schema, profiles := parsed.Build()
	w.driver, err = drive.New(drive.Config{Schema: schema, Core: core.DefaultConfig(profiles...), Workers: w,
		Inbox: func(in step.Input) { w.inbox = append(w.inbox, in) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range w.nodes {
		w.inbox = append(w.inbox, step.NodeSet{Node: n})
	}
	for _, name := range []string{"n0", "n1"} {
		w.inbox = append(w.inbox, step.PodSet{Pod: testkit.Pod("on-"+name).Req("cpu", "4").On(name).Obj()})
	}
	w.inbox = append(w.inbox, step.PodSet{Pod: testkit.Pod("precious").Priority(100).On("n0").Obj()})
	return w
}

// run shows a pod and lets everything come to rest, for five minutes at most.
func (w *world) run(pod *v1.Pod) {
	w.t.Helper()
	w.inbox = append(w.inbox, step.PodSet{Pod: pod})
	for range 60 {
		in := w.inbox
		w.inbox = nil
		if _, err := w.driver.Step(w.now, in...); err != nil {
			w.t.Fatal(err)
		}
		for _, broken := range w.driver.Core().Invariants() {
			w.t.Errorf("broken invariant: %s", broken)
		}
		if len(w.inbox) == 0 {
			w.now = w.now.Add(5 * time.Second)
		}
	}
}

// asked are the pods by what extenders are asked about them: one that fits on three nodes, and
// one that others have to leave a node for.
func asked(preempts bool) *v1.Pod {
	pod := testkit.Pod("high").Priority(10)
	if preempts {
		return pod.Req("cpu", "4").Select("kubernetes.io/hostname", "n0").Obj()
	}
	return pod.Req("cpu", "1").Obj()
}

// TestVictimsThatCantBeMeantAreAnError has an extender leave a node for preemption with victims
// that are none.
func TestVictimsThatCantBeMeantAreAnError(t *testing.T) {
	for answer, want := range map[string]string{
		`{"nodeNameToMetaVictims":{"n0":{"pods":[null]}}}`:                                `node "n0": victim 0 has no UID`,
		`{"nodeNameToMetaVictims":{"n0":{"pods":[{}]}}}`:                                  `node "n0": victim 0 has no UID`,
		`{"nodeNameToMetaVictims":{"n0":{"pods":[{"uid":"pod-on-n0"},null]}}}`:            `node "n0": victim 1 has no UID`,
		`{"nodeNameToMetaVictims":{"n0":{"pods":[]}}}`:                                    `expected at least one victim pod on node "n0"`,
		`{"nodeNameToMetaVictims":{"n0":null}}`:                                           `expected at least one victim pod on node "n0"`,
		`{"nodeNameToMetaVictims":{"":{"pods":[{"uid":"pod-on-n0"}]}}}`:                   `claims a node "" for preemption`,
		`{"nodeNameToMetaVictims":{"n0":{"pods":[{"uid":"u"}],"numPDBViolations":-7}}}`:   "-7 violated disruption budgets",
		`{"nodeNameToMetaVictims":{"n0":{"pods":[{"uid":"u"}],"numPDBViolations":1e99}}}`: "reading the response",
	} {
		w := newWorld(t, &kubeschedulerv1.Extender{URLPrefix: "http://x", PreemptVerb: "p", NodeCacheCapable: true}, answer)
		w.run(asked(true))
		if w.err == nil || !strings.Contains(w.err.Error(), want) {
			t.Errorf("%s: error %v, want …%s…", answer, w.err, want)
		}
		if len(w.preempted) > 0 {
			t.Errorf("%s: %v had to leave", answer, w.preempted)
		}
		// One that is ignorable is left out of the decision.
		w = newWorld(t, &kubeschedulerv1.Extender{URLPrefix: "http://x", PreemptVerb: "p", NodeCacheCapable: true, Ignorable: true}, answer)
		w.run(asked(true))
		if w.err != nil {
			t.Errorf("%s, ignorable: error %v", answer, w.err)
		}
	}
}

// TestReasonsAreBounded: what an extender says goes into the status of pods, of which the API
// server takes so much only.
func TestReasonsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for _, answer := range []string{`{"error":"` + long + `"}`, `{"nodeNames":[],"failedNodes":{"n2":"` + long + `"}}`} {
		w := newWorld(t, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f", NodeCacheCapable: true}, answer)
		a := w.chain.Ask(t.Context(), step.Consult{UID: "u", Pod: asked(false), Nodes: []string{"n2"}}, nodes("n2"))
		text := a.Failed["n2"]
		if a.Err != nil {
			text = a.Err.Error()
		}
		if n := len(text); n < 100 || n > door.MaxText+100 || !strings.HasSuffix(text, "…") || strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("a reason of %d bytes is told in %d, want some %d with … at the end", len(long), n, door.MaxText)
		}
	}
}

// endless is an answer without an end.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += int64(len(p))
	return len(p), nil
}

// RoundTrip implements http.RoundTripper.
func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(e), Request: r}, nil
}

// TestAnAnswerWithoutAnEndIsCutOff: it takes no more memory than an answer to the question can.
func TestAnAnswerWithoutAnEndIsCutOff(t *testing.T) {
	w := newWorld(t, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f", NodeCacheCapable: true}, "")
	e := &endless{}
	w.chain.extenders[0].client = &http.Client{Transport: e}
	a := w.chain.Ask(t.Context(), step.Consult{UID: "u", Pod: asked(false), Nodes: []string{"n2"}}, nodes("n2"))
	if a.Err == nil || e.read > 40<<20 {
		t.Errorf("error %v after %d bytes, want one after some 16 MiB", a.Err, e.read)
	}
}

// TestWholeNodesAreSentAsTheProtocolHasThem compares what is sent, which is put together of
// nodes that were encoded before, with the encoding of the protocol's own type.
func TestWholeNodesAreSentAsTheProtocolHasThem(t *testing.T) {
	w := newWorld(t, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f", PrioritizeVerb: "p", Weight: 1}, `{}`)
	x, pod := w.chain.extenders[0], asked(false)
	all := nodes("n0", "n1", "n2")
	all[1].Annotations = map[string]string{"text": "<&>\u2028 \"é"}
	for _, asked := range [][]*v1.Node{all, all[1:], {all[2], all[0]}, all[:1]} {
		list := &v1.NodeList{}
		for _, n := range asked {
			list.Items = append(list.Items, *n)
		}
		want, err := json.Marshal(extenderv1.ExtenderArgs{Pod: pod, Nodes: list})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Filter(t.Context(), pod, asked); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(w.said.sent, want) {
			t.Errorf("sent\n%s\nwant\n%s", w.said.sent, want)
		}
	}
}

// FuzzAnswer lets an extender say anything to any question: Berth goes on, keeps its
// invariants, and does nothing that its own rules forbid.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		`{"nodeNameToMetaVictims":{"n0":{"pods":[null]}}}`,
		`{"nodeNameToMetaVictims":{"n0":{"pods":[{"uid":"pod-on-n0"}],"numPDBViolations":3}}}`,
		`{"nodeNameToMetaVictims":{"n0":{"pods":[{"uid":"pod-on-n1"},{"uid":"pod-high"},{"uid":"pod-precious"}]},"n1":null}}`,
		`{"nodeNames":["n2","n2"],"failedNodes":{"n3":"full","n9":""},"failedAndUnresolvableNodes":{"n3":"never"}}`,
		`{"nodes":{"items":[{"metadata":{"name":"n4"}},{}]}}`,
		`{"nodeNames":null,"nodes":null,"error":"no licence"}`,
		`[{"host":"n2","score":9223372036854775807},{"host":"n2","score":-1},{"host":"n9"}]`,
		`{"nodes":{"items":[{"metadata":{"name":"n4"},"status":{"allocatable":{"cpu":"4e999999999","memory":1e-999999999}}}]}}`,
		`null`, `[]`, `{`, ``,
	} {
		for kind := range byte(16) {
			f.Add(kind, answer)
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, answer string) {
		preempts, cached, ignorable, binds := kind&1 != 0, kind&2 != 0, kind&4 != 0, kind&8 != 0
		x := &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f", PrioritizeVerb: "p", PreemptVerb: "v", Weight: 1, NodeCacheCapable: cached, Ignorable: ignorable}
		if preempts {
			x.FilterVerb, x.PrioritizeVerb = "", ""
		}
		if binds {
			x.BindVerb = "b"
		}
		w := newWorld(t, x, answer)
		w.run(asked(preempts))
		_ = w.chain.extenders[0].Bind(t.Context(), &extenderv1.ExtenderBindingArgs{})
		left := map[string]bool{}
		for _, name := range w.preempted {
			left[name] = true
			if name != "on-n0" && (preempts || name != "on-n1") {
				t.Errorf("pod %s had to leave its node", name)
			}
		}
		for _, bound := range w.bound {
			node := strings.TrimPrefix(bound, "high to ")
			if preempts && node != "n0" || (node == "n0" || node == "n1") && !left["on-"+node] {
				t.Errorf("bound %s, where there is no room", bound)
			}
		}
	})
}
