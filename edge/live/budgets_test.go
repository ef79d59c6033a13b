package live

import (
	"log/slog"
	"testing"

	"k8s.io/client-go/rest"
)

// TestReportsHaveWhatBindsLeave counts the calls that are let through at once.
func TestReportsHaveWhatBindsLeave(t *testing.T) {
	busy := true
	l := newReportLimiter(1, 1000, 1000, func() bool { return busy })
	accepted := func() (n int) {
		for range 20 {
			if l.TryAccept() {
				n++
			}
		}
		return n
	}
	if n := accepted(); n != 2 {
		t.Errorf("%d of 20 calls at once while binds are queued, want the burst of 2", n)
	}
	busy = false
	if n := accepted(); n != 20 {
		t.Errorf("%d of 20 calls at once while none is", n)
	}
}

// TestLoadIsHighWhenCallsAreQueued goes one beyond what workers send at a time.
func TestLoadIsHighWhenCallsAreQueued(t *testing.T) {
	for _, c := range []struct {
		binds, preemptions, nominations int64
		want                            bool
	}{
		{0, 0, 0, false}, {bindWorkers, preemptWorkers, nominateWorkers, false},
		{bindWorkers + 1, 0, 0, true}, {0, preemptWorkers + 1, 0, true}, {0, 0, nominateWorkers + 1, true},
	} {
		l := &load{}
		l.binds.Store(c.binds)
		l.preemptions.Store(c.preemptions)
		l.nominations.Store(c.nominations)
		if got := l.high(); got != c.want {
			t.Errorf("%d binds, %d preemptions and %d nominations under way: high is %v, want %v", c.binds, c.preemptions, c.nominations, got, c.want)
		}
	}
}

// TestEachBudgetHasItsClient shows that no two kinds of calls share a limiter, and
// that binds, preemptions and nominations each have the rate of the configuration.
func TestEachBudgetHasItsClient(t *testing.T) {
	c, err := newClients(&rest.Config{Host: "http://localhost", QPS: 7, Burst: 9}, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[any]string{}
	for _, x := range []struct {
		name string
		of   interface{ QPS() float32 }
		want float32
	}{
		{"watch", c.watch.CoreV1().RESTClient().GetRateLimiter(), watchQPS}, {"bind", c.bind.CoreV1().RESTClient().GetRateLimiter(), 7},
		{"report", c.report.CoreV1().RESTClient().GetRateLimiter(), reportQPS}, {"node", c.node.CoreV1().RESTClient().GetRateLimiter(), nodeQPS},
		{"evict", c.evict.CoreV1().RESTClient().GetRateLimiter(), evictQPS}, {"surge", c.surge.CoreV1().RESTClient().GetRateLimiter(), surgeQPS}, {"preempt", c.preempt.CoreV1().RESTClient().GetRateLimiter(), 7},
		{"nominate", c.nominate.CoreV1().RESTClient().GetRateLimiter(), 7},
	} {
		if x.of.QPS() != x.want {
			t.Errorf("%s: %v calls a second, want %v", x.name, x.of.QPS(), x.want)
		}
		if other := seen[x.of]; other != "" {
			t.Errorf("%s and %s share a budget", x.name, other)
		}
		seen[x.of] = x.name
	}
}
