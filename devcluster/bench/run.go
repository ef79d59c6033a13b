package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/sim/checker"
)

// This file is one run: one contender places the pods of one case.
//
//	reset, create the pods ─▶ start the contender ─▶ all pods are bound ─▶ no event for
//	eventPause ─▶ measure, check the placements ─▶ stop the contender
//
// What must hold: nothing that creates pods runs while the contender is measured, but for
// the churn that the case asks for; and a run of a scheduler counts only when the checker
// finds every pod placed, and no placement that breaks a rule.

// eventPause is how long no event may come after the last for it to count as the last.
const eventPause = 2 * time.Second

// attempt is a run that is under way.
// It is used for one run and then thrown away.
type attempt struct {
	*bench
	c       Case
	name    string // of the contender
	title   string // for the progress line
	pods    int    // how many are measured
	counter *counter
	contender
	died   chan error // a process of the contender has ended; has room for each
	failed chan error // what happens meanwhile has failed; has room for each
	tick   *time.Ticker
}

// snapshot is what had been used and called at a time.
type snapshot struct {
	at           time.Time
	calls        calls
	server, etcd time.Duration // CPU time
}

// run has a contender place the pods of a case, and returns what was measured.
// Its error says what went wrong; the caller adds the case and the contender.
func (b *bench) run(ctx context.Context, c Case, name string, round int) (*Run, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limit, fmt.Errorf("took longer than --limit %s", b.o.Limit))
	defer cancel()
	a := &attempt{bench: b, c: c, name: name, pods: c.size(b.o.Size), died: make(chan error, 2), failed: make(chan error, 2),
		title: fmt.Sprintf("%s, round %d of %d, %s", c.Name, round+1, b.o.Rounds, name)}
	if err := a.createPods(ctx); err != nil {
		return nil, err
	}
	var err error
	// The counter watches before the contender starts, so that it sees every bind.
	if a.counter, err = startCounter(ctx, b.config); err != nil {
		return nil, err
	}
	// Taken before the contender starts: what it does at start counts, as in production.
	before, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if c.groups != nil {
		stop, err := a.serveGroups(c.groups(b.o.Size))
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	// After an error, too.
	defer a.stop()
	if err := a.start(); err != nil {
		return nil, err
	}
	a.tick = time.NewTicker(time.Second)
	defer a.tick.Stop()
	if err := a.awaitBinds(ctx); err != nil {
		return nil, err
	}
	// Times are when a watch showed them, not when the contender was answered.
	bound := a.counter.times()
	lastEvent, err := a.awaitEvents(ctx)
	if err != nil {
		return nil, err
	}
	out, err := a.result(ctx, before, bound, lastEvent)
	if err != nil {
		return nil, err
	}
	out.Round = round
	b.show("")
	fmt.Fprintf(b.o.Progress, "%s: %d pods in %.1f s, %.0f pods/s, %.2f ms of CPU a pod\n", a.title, a.pods, out.AllAfterS, out.PodsPerS.Mean, out.CPUMs)
	return out, nil
}

// createPods brings the cluster to its state at the start of a run.
// With steady only the first pods exist, and the others come as these are bound; those that come last don't exist.
func (a *attempt) createPods(ctx context.Context) error {
	a.show("%s: clearing", a.title)
	if err := a.reset(ctx); err != nil {
		return err
	}
	if err := a.prepare(ctx, a.c); err != nil {
		return err
	}
	n := a.pods
	if a.c.steady > 0 {
		n = min(n, a.c.steady)
	}
	if a.c.comeLast {
		n = 0
	}
	return a.each(ctx, a.title+": pods", n, func(ctx context.Context, i int) error { return a.createPod(ctx, a.c, i) })
}

// snapshot reads what was used and called so far.
// Calls are read from the API server's metrics.
func (a *attempt) snapshot(ctx context.Context) (snapshot, error) {
	calls, err := a.calls(ctx)
	return snapshot{time.Now(), calls, a.cluster.Process("kube-apiserver").Usage().CPU, a.cluster.Process("etcd").Usage().CPU}, err
}

// awaitTick waits for the next second. It returns an error when the run can't go on.
// Whatever ends the run is noticed within a second.
func (a *attempt) awaitTick(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-a.died:
		return cmp.Or(err, errors.New("it ended"))
	case err := <-a.cluster.Failed():
		return err
	case err := <-a.failed:
		return err
	case <-a.tick.C:
		return nil
	}
}

// awaitBinds returns when all measured pods are bound. What happens meanwhile is ended before it returns, or it would be
// measured with events.
func (a *attempt) awaitBinds(ctx context.Context) error {
	var churn sync.WaitGroup
	churning, stopChurn := context.WithCancel(ctx)
	defer func() { stopChurn(); churn.Wait() }()
	for _, f := range a.meanwhile() {
		churn.Go(func() {
			if err := f(churning); err != nil {
				a.failed <- err
			}
		})
	}
	for last := 0; a.counter.count() < a.pods; {
		if err := a.awaitTick(ctx); err != nil {
			return fmt.Errorf("%d of %d pods bound: %w", a.counter.count(), a.pods, err)
		}
		now := a.counter.count()
		a.show("%s: %6d of %d bound, %5d pods/s", a.title, now, a.pods, now-last)
		last = now
	}
	return nil
}

// meanwhile returns what happens while the contender works, two things at most. To a bare loop only measured pods come:
// the rest would say nothing about the calls.
func (a *attempt) meanwhile() (out []func(context.Context) error) {
	if a.c.during != nil && !a.bare() {
		out = append(out, func(ctx context.Context) error { return a.c.during(ctx, a.bench, a.o.Size) })
	}
	switch {
	case a.c.steady > 0:
		out = append(out, func(ctx context.Context) error { return replace(ctx, a.bench, a.c) })
	case a.c.comeLast:
		out = append(out, a.arrive)
	}
	return out
}

// awaitEvents returns when the contender writes nothing more: the calls made until then,
// and when the last of them was seen.
// Binds may be over long before events are.
func (a *attempt) awaitEvents(ctx context.Context) (snapshot, error) {
	now, err := a.calls(ctx)
	if err != nil {
		return snapshot{}, err
	}
	for lastSeen := time.Now(); ; {
		if time.Since(lastSeen) >= eventPause {
			return snapshot{at: lastSeen, calls: now}, nil
		}
		a.show("%s: all bound, waiting for events", a.title)
		if err := a.awaitTick(ctx); err != nil {
			return snapshot{}, fmt.Errorf("waiting for events: %w", err)
		}
		next, err := a.calls(ctx)
		if err != nil {
			return snapshot{}, err
		}
		if next.afterBinds() != now.afterBinds() {
			lastSeen = time.Now()
		}
		now = next
	}
}

// result computes the numbers of the run from what it began with, when pods were bound,
// and the last event. It checks the placements of a scheduler.
// Numbers are per pod, so that sizes can be compared.
func (a *attempt) result(ctx context.Context, before snapshot, bound []time.Time, lastEvent snapshot) (*Run, error) {
	usage := a.usage()
	perPod := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(a.pods) }
	// In cases where nodes come late the time until the first counts, too.
	first, last := bound[0], bound[len(bound)-1]
	if a.c.late {
		first = before.at
	}
	out := &Run{
		Contender: a.name, PodsPerS: rates(first, bound), FirstAfterS: bound[0].Sub(before.at).Seconds(), AllAfterS: last.Sub(before.at).Seconds(),
		CPUMs:       perPod(usage.CPU),
		APIServerMs: perPod(a.cluster.Process("kube-apiserver").Usage().CPU - before.server),
		EtcdMs:      perPod(a.cluster.Process("etcd").Usage().CPU - before.etcd),
		PeakMemory:  usage.PeakRSS, Calls: lastEvent.calls.since(before.calls), EventsAfterS: max(0, lastEvent.at.Sub(last).Seconds()),
	}
	if a.c.steady > 0 {
		// These calls are the bench's own.
		for _, k := range steadyCalls {
			delete(out.Calls, k)
		}
	}
	for k := range out.Calls {
		out.Calls[k] /= float64(a.pods)
	}
	if a.bare() {
		return out, nil
	}
	tries, err := attempts(ctx, a.port)
	if err != nil {
		return nil, err
	}
	out.Attempts = tries / float64(a.pods)
	return out, a.check(ctx)
}

// check returns an error unless all measured pods are placed, and no placement breaks a
// rule.
func (a *attempt) check(ctx context.Context) error {
	pods, err := api.Pods(ctx, a.client, metav1.NamespaceAll, "spec.nodeName!=")
	if err != nil {
		return err
	}
	nodes, err := api.Nodes(ctx, a.client)
	if err != nil {
		return err
	}
	if a.c.devices > 0 {
		for _, p := range pods {
			checker.DropRequests(p, isExtended)
		}
	}
	placed := 0
	for _, p := range pods {
		if p.Namespace == measured {
			placed++
		}
	}
	// With steady, pods were deleted once they were bound.
	if placed != a.pods && a.c.steady == 0 {
		return fmt.Errorf("expected %d pods to be bound, found %d", a.pods, placed)
	}
	if found := checker.Check(nodes, pods, nil); len(found) > 0 {
		return fmt.Errorf("%d placements break a rule; the first: %s", len(found), found[0])
	}
	return a.checkDevices(ctx)
}
