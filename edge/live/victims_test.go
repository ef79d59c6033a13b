package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestEvictOutcomes(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name    string
		answer  error
		fails   bool
		refused bool
	}{
		{"evicted", nil, false, false},
		{"gone already", apierrors.NewNotFound(resource, "p"), false, false},
		{"another pod has its name", apierrors.NewConflict(resource, "p", errors.New("uid")), false, false},
		{"forbidden", apierrors.NewForbidden(resource, "p", nil), true, false},
		{"a budget doesn't allow it", apierrors.NewTooManyRequests("disruption budget", 0), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			calls := 0
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls++
				return true, nil, c.answer
			})
			err := evictor{client}.evict(context.Background(), step.Eviction{UID: "u", Namespace: "default", Name: "p", Node: "n"})
			if (err != nil) != c.fails || errors.Is(err, step.ErrRefused) != c.refused || calls != 1 {
				t.Errorf("got %v after %d calls, want failure %v, refused %v, after 1", err, calls, c.fails, c.refused)
			}
		})
	}
}

// TestEvictionsNameThePodAndItsGrace: another pod of the name is left alone, and the pod has
// as long as the core says, or as it says itself.
func TestEvictionsNameThePodAndItsGrace(t *testing.T) {
	for grace, want := range map[*time.Duration]string{nil: "u <nil>", ptr.To(90 * time.Second): "u 90", ptr.To(time.Duration(0)): "u 0"} {
		client := fake.NewClientset()
		got := ""
		client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			options := a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).DeleteOptions
			got = fmt.Sprint(*options.Preconditions.UID, " ")
			if s := options.GracePeriodSeconds; s != nil {
				got += fmt.Sprint(*s)
			} else {
				got += "<nil>"
			}
			return true, nil, nil
		})
		if err := (evictor{client}).evict(t.Context(), step.Eviction{UID: "u", Namespace: "default", Name: "p", Grace: grace}); err != nil || got != want {
			t.Errorf("grace %v: got %q, %v, want %q", grace, got, err, want)
		}
	}
}

func TestPreemptOutcomes(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	gone, other, never := apierrors.NewNotFound(resource, "p"), apierrors.NewConflict(resource, "p", errors.New("uid")), apierrors.NewForbidden(resource, "p", nil)
	for _, c := range []struct {
		name          string
		patch, remove error
		calls         string
		fails         bool
	}{
		{"asked to leave", nil, nil, "patch status delete u ", false},
		{"gone before the condition", gone, nil, "patch status ", false},
		{"gone before the deletion", nil, gone, "patch status delete u ", false},
		{"another pod has its name", other, nil, "patch status ", false},
		{"another pod has its name by now", nil, other, "patch status delete u ", false},
		{"no condition, no deletion", never, nil, "patch status ", true},
		{"not allowed to delete", nil, never, "patch status delete u ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			calls := ""
			client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls += "patch " + a.GetSubresource() + " "
				if text := string(a.(clienttesting.PatchAction).GetPatch()); !strings.Contains(text, "PreemptionByScheduler") || !strings.Contains(text, `"uid":"u"`) || !strings.Contains(text, `"observedGeneration":7`) {
					t.Errorf("patch %s", text)
				}
				return true, &v1.Pod{}, c.patch
			})
			client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls += "delete " + string(*a.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions.UID) + " "
				return true, nil, c.remove
			})
			err := preemptor{client, &atomic.Int64{}}.preempt(context.Background(), step.Preemption{UID: "u", Namespace: "default", Name: "p", Generation: 7})
			if (err != nil) != c.fails || calls != c.calls {
				t.Errorf("got %v after %q, want failure %v after %q", err, calls, c.fails, c.calls)
			}
		})
	}
}

// scripted is an API server that answers calls with what is next, and then that all is well.
type scripted struct {
	mu      sync.Mutex
	answers []answer
	calls   []string
}

// answer is an HTTP response, or err.
type answer struct {
	code                 int
	after, content, body string // Retry-After and Content-Type
	err                  error
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	a := answer{code: http.StatusCreated, content: "application/json", body: `{"kind":"Status","apiVersion":"v1","status":"Success"}`}
	if r.Method != http.MethodPost {
		a = answer{code: http.StatusOK, content: "application/json", body: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`}
	}
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	if a.err != nil {
		return nil, a.err
	}
	header := http.Header{"Content-Type": {a.content}}
	if a.after != "" {
		header.Set("Retry-After", a.after)
	}
	return &http.Response{StatusCode: a.code, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func (s *scripted) clients(t *testing.T) *clients {
	t.Helper()
	c, err := newClients(&rest.Config{Host: "http://api", Transport: s, QPS: 1000, Burst: 1000}, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEvictionsAndTooManyRequests tells a disruption budget's refusal, which the core has to know
// at once, from the API server's that has too much to do, which is over when it says.
func TestEvictionsAndTooManyRequests(t *testing.T) {
	budget := answer{code: http.StatusTooManyRequests, after: "10", content: "application/json", body: `{"kind":"Status","apiVersion":"v1","status":"Failure",
		"message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","code":429,
		"details":{"retryAfterSeconds":10,"causes":[{"reason":"DisruptionBudget","message":"still being processed"}]}}`}
	busy := answer{code: http.StatusTooManyRequests, after: "3", content: "text/plain; charset=utf-8", body: "Too many requests, please try again later."}
	for _, c := range []struct {
		name    string
		answers []answer
		refused bool
		calls   int
		took    time.Duration
	}{
		{"evicted", nil, false, 1, 0},
		{"a budget that is still being processed", []answer{budget}, true, 1, 0},
		{"the API server has too much to do", []answer{busy, busy}, false, 3, 6 * time.Second},
		{"first this, then that", []answer{busy, budget}, true, 2, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &scripted{answers: c.answers}
				begin := time.Now()
				err := evictor{api.clients(t).evict}.evict(t.Context(), step.Eviction{UID: "u", Namespace: "default", Name: "p"})
				if took := time.Since(begin); errors.Is(err, step.ErrRefused) != c.refused || !c.refused && err != nil || len(api.calls) != c.calls || took != c.took {
					t.Errorf("got %v after %s and the calls %q, want refused %v after %s and %d calls", err, took, api.calls, c.refused, c.took, c.calls)
				}
			})
		})
	}
}

// TestPreemptionsOutlastARestart of the API server: a victim that has its condition is deleted,
// too. What the API server understands and refuses isn't tried for long.
func TestPreemptionsOutlastARestart(t *testing.T) {
	ok := answer{code: http.StatusOK, content: "application/json", body: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`}
	broken := answer{code: http.StatusInternalServerError, content: "application/json",
		body: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a webhook failed","reason":"InternalError","code":500}`}
	away := answer{err: errors.New("connection refused")}
	unavailable := answer{code: http.StatusServiceUnavailable, after: "1", content: "text/plain", body: "shutting down"}
	times := func(n int, a answer) (out []answer) {
		for range n {
			out = append(out, a)
		}
		return out
	}
	for _, c := range []struct {
		name          string
		answers       []answer
		fails         bool
		least, atMost time.Duration
	}{
		{"for a while", append([]answer{ok}, append(times(12, away), unavailable)...), false, 5 * time.Second, 20 * time.Second},
		{"for ever", append([]answer{ok}, times(1000, away)...), true, awayFor, awayFor + 5*time.Second},
		{"a webhook refuses", append([]answer{ok}, times(1000, broken)...), true, time.Second, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &scripted{answers: c.answers}
				begin := time.Now()
				err := preemptor{api.clients(t).preempt, &atomic.Int64{}}.preempt(t.Context(), step.Preemption{UID: "u", Namespace: "default", Name: "p"})
				if took := time.Since(begin); (err != nil) != c.fails || took < c.least || took > c.atMost {
					t.Errorf("got %v after %s, want failure %v after %s to %s", err, took, c.fails, c.least, c.atMost)
				}
			})
		})
	}
}

// TestPodsLeaveSideBySide has each call take a second. Those about one pod are made in the order
// in which they were handed out, whether it is evicted or preempted.
func TestPodsLeaveSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		api := &slowAPI{}
		c := api.clients(t)
		var queued atomic.Int64
		l := newLeavers(c.evict, c.preempt, &queued)
		l.run(ctx, &wg)
		none := newReporter(nil, nil, "host", nil, &load{}).outcomeOf("nobody")
		begin := time.Now()
		var mu sync.Mutex
		took := map[string]time.Duration{}
		done := func(what string) func(error) {
			return func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if took[what] = time.Since(begin); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		for i := range evictWorkers {
			name := fmt.Sprint("e", i)
			l.evict(ctx, step.Eviction{UID: types.UID(name), Namespace: "default", Name: name}, done("evict "+name))
		}
		l.preempt(ctx, step.Preemption{UID: "e0", Namespace: "default", Name: "e0"}, none, done("preempt e0"))
		l.preempt(ctx, step.Preemption{UID: "v", Namespace: "default", Name: "v"}, none, done("preempt v"))
		l.evict(ctx, step.Eviction{UID: "v", Namespace: "default", Name: "v"}, done("evict v"))
		time.Sleep(time.Minute)
		synctest.Wait()
		// A victim takes two calls, its condition and its deletion.
		want := map[string]time.Duration{"preempt e0": 3 * time.Second, "preempt v": 2 * time.Second, "evict v": 3 * time.Second}
		for i := range evictWorkers {
			want[fmt.Sprint("evict e", i)] = time.Second
		}
		if !maps.Equal(took, want) {
			t.Errorf("the calls were answered after %v, want %v", took, want)
		}
		if n := queued.Load(); n != 0 {
			t.Errorf("%d victims count as queued when all have been asked", n)
		}
	})
}

// TestNoVictimLeavesBeforeTheNominationIsWritten has the nomination of a preemptor take a second
// and end in each way that it can. The API server's answers to the calls about the victim are all
// right.
func TestNoVictimLeavesBeforeTheNominationIsWritten(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name   string
		answer error         // to the nomination
		takes  time.Duration // each attempt; a second when 0
		bound  bool          // the preemptor's bind begins while the nomination waits
		asked  bool
		after  time.Duration // when the core has the outcome
	}{
		{"written", nil, 0, false, true, time.Second},
		{"its connection hangs", nil, 45 * time.Second, false, true, longestAfter},
		{"the API server doesn't want it", apierrors.NewForbidden(resource, "p", nil), 0, false, true, time.Second},
		{"the preemptor is gone", apierrors.NewNotFound(resource, "p"), 0, false, true, time.Second},
		{"the API server is away", errors.New("connection refused"), 0, false, false, 7 * time.Second}, // five attempts
		{"the preemptor being bound", nil, 0, true, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer stop()
				api, victims := fake.NewClientset(), fake.NewClientset(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "v", UID: "v"}})
				api.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &v1.Pod{}, c.answer })
				slow := slowPods{api, func(string) { time.Sleep(cmp.Or(c.takes, time.Second)) }}
				w := &workers{ctx: ctx, reporter: newReporter(slow, slow, "host", slog.New(slog.DiscardHandler), &load{}), leavers: newLeavers(victims, victims, &atomic.Int64{})}
				w.Nominate(step.Nomination{UID: "p", Namespace: "default", Name: "p", Node: "n"}, func(error) {})
				var err error
				var after time.Duration
				begin := time.Now()
				w.Preempt(step.Preemption{UID: "v", Namespace: "default", Name: "v", By: "p"}, func(e error) { err, after = e, time.Since(begin) })
				if c.bound {
					w.reporter.drop("p")
				}
				w.reporter.run(ctx, &wg)
				w.leavers.run(ctx, &wg)
				time.Sleep(time.Second / 2)
				if n := len(victims.Actions()); n != 0 {
					t.Errorf("%d calls about the victim before the nomination has an outcome", n)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if asked := len(victims.Actions()) > 0; asked != c.asked || (err == nil) != c.asked {
					t.Errorf("the victim was asked to leave: %v, with outcome %v; want %v", asked, err, c.asked)
				}
				if after.Truncate(time.Second) != c.after {
					t.Errorf("the core has the outcome after %s, want %s", after, c.after)
				}
			})
		})
	}
}

// slowAPI is an API server that takes a second for each call.
type slowAPI struct{ scripted }

func (s *slowAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	return s.scripted.RoundTrip(r)
}

func (s *slowAPI) clients(t *testing.T) *clients {
	c, err := newClients(&rest.Config{Host: "http://api", Transport: s, QPS: 1000, Burst: 1000}, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
