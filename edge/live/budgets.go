package live

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// API calls are divided into budgets, in calls per second, each with a client of
// its own over shared connections. Binds, preemptions and nominations have what --config says
// (clientConnection.qps), each the whole of it. Reports have what these leave: a
// small budget while some of them are queued, theirs when none is.

const (
	watchQPS  = 50  // lists and watches
	reportQPS = 20  // conditions and events together, while binds, preemptions or nominations are queued
	nodeQPS   = 100 // taints, and the status of the autoscaler
	evictQPS  = 50  // evictions
	surgeQPS  = 10  // Deployments that make a successor: each is read and patched
)

// newClients makes a client for each budget. Core types travel as protobuf. busy
// reports whether binds, preemptions or nominations are queued.
func newClients(base *rest.Config, busy func() bool, log *slog.Logger) (*clients, error) {
	out := clients{time: &serverTime{}}
	base = out.time.reading(base)
	away := &outages{log: log}
	for _, x := range []struct {
		to    *kubernetes.Interface
		qps   float32 // 0 for that of base
		limit flowcontrol.RateLimiter
	}{
		{&out.watch, watchQPS, nil}, {&out.bind, 0, nil}, {&out.report, 0, newReportLimiter(reportQPS, base.QPS, base.Burst, busy)},
		{&out.node, nodeQPS, nil}, {&out.evict, evictQPS, nil}, {&out.surge, surgeQPS, nil}, {&out.preempt, 0, nil}, {&out.nominate, 0, nil},
	} {
		cfg := rest.CopyConfig(base)
		cfg.ContentType = "application/vnd.kubernetes.protobuf"
		cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		cfg.RateLimiter = x.limit
		if x.to == &out.report || x.to == &out.nominate {
			withdrawable(cfg)
		}
		if x.to == &out.evict {
			cfg.Wrap(func(t http.RoundTripper) http.RoundTripper { return refusalsAtOnce{t} })
		}
		if x.to == &out.watch {
			cfg.Wrap(func(t http.RoundTripper) http.RoundTripper { return patient{t, away} })
		}
		if x.qps > 0 {
			cfg.QPS, cfg.Burst = x.qps, int(2*x.qps)
		}
		c, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return nil, fmt.Errorf("making an API client: %w", err)
		}
		*x.to = c
		if x.to != &out.watch && x.to != &out.report {
			continue
		}
		// Kinds that CustomResourceDefinitions define travel as JSON, within the same budget.
		cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
		cfg.RateLimiter = c.CoreV1().RESTClient().GetRateLimiter()
		d, err := dynamic.NewForConfig(cfg)
		if err != nil {
			return nil, fmt.Errorf("making an API client: %w", err)
		}
		if x.to == &out.watch {
			out.watchAny = d
		} else {
			out.reportAny = d
		}
	}
	return &out, nil
}

// load counts the calls that reports must not delay: binds, preemptions and nominations that
// were handed out and wait for their turn, or are being sent.
type load struct {
	binds       atomic.Int64
	preemptions atomic.Int64
	nominations atomic.Int64
}

// high reports whether more of them are there than workers send at a time, so that
// some are queued.
func (l *load) high() bool {
	return l.binds.Load() > bindWorkers || l.preemptions.Load() > preemptWorkers || l.nominations.Load() > nominateWorkers
}

// reportLimiter limits status and event writes: to a small rate while busy says that
// binds, preemptions or nominations are queued, and to the budget of binds otherwise.
type reportLimiter struct {
	small, full flowcontrol.RateLimiter
	busy        func() bool
}

var _ flowcontrol.RateLimiter = (*reportLimiter)(nil)

// newReportLimiter returns a limiter of small calls per second while busy, and of
// qps with bursts otherwise; a qps of 0 or below is no limit, as for any client.
func newReportLimiter(small, qps float32, burst int, busy func() bool) *reportLimiter {
	l := &reportLimiter{small: flowcontrol.NewTokenBucketRateLimiter(small, int(2*small)), full: flowcontrol.NewFakeAlwaysRateLimiter(), busy: busy}
	if qps > 0 {
		l.full = flowcontrol.NewTokenBucketRateLimiter(max(qps, small), max(burst, int(2*small)))
	}
	return l
}

// current returns the limiter that holds now.
func (l *reportLimiter) current() flowcontrol.RateLimiter {
	if l.busy() {
		return l.small
	}
	return l.full
}

// TryAccept implements flowcontrol.RateLimiter.
func (l *reportLimiter) TryAccept() bool { return l.current().TryAccept() }

// Accept implements flowcontrol.RateLimiter.
func (l *reportLimiter) Accept() { l.current().Accept() }

// Wait implements flowcontrol.RateLimiter. Who waits already keeps to the limit that
// held when it began.
func (l *reportLimiter) Wait(ctx context.Context) error { return l.current().Wait(ctx) }

// QPS implements flowcontrol.RateLimiter: the highest rate that there may be.
func (l *reportLimiter) QPS() float32 { return l.full.QPS() }

// Stop implements flowcontrol.RateLimiter.
func (l *reportLimiter) Stop() { l.small.Stop(); l.full.Stop() }
