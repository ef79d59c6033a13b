package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/devcluster/devices"
	"github.com/berthproject/berth/devcluster/storm/checker"
)

// Options of a storm. BerthFlags and Logs may be empty; all else is needed.
type Options struct {
	Seed   uint64
	Lasts  time.Duration // the plan; start, rest and end come on top of it
	Kinds  []string      // of misfortunes
	Berths int
	Berth  string // path of the berth binary
	Logs   string // directory that keeps the Berths' logs; "" for a temporary one
	Strict bool   // placements that resume late break the storm, too
	// Each has the storm go on until each of Kinds has come once, however long that takes.
	Each bool
	// Devices has a driver publish devices, and pods claim them.
	Devices bool
	Out     io.Writer
	// BerthFlags are further flags of berth run.
	BerthFlags []string
}

// Times of a run.
const (
	// patience is how long what mustn't stay may stay in calm times: longer than the longest
	// back-off of a pod (10 s) and than a removal takes.
	patience = 40 * time.Second
	// stuckAfter is how long after a misfortune nothing may be placed before the storm calls
	// Berth stuck and goes on.
	stuckAfter = 90 * time.Second
	// breather is how long it is calm before a misfortune, and how long after the first
	// placement silence may still come.
	breather = 3 * time.Second
	// restWithin is how long the cluster may take to come to rest when nobody creates anything
	// any more, and as long again until no node is left without load.
	restWithin = 90 * time.Second
)

// ErrBroken is the error of a storm in which an invariant broke.
var ErrBroken = errors.New("an invariant broke")

// run is one storm while it is on. rows belong to the goroutine that plays; the watcher has a lock.
type run struct {
	o     Options
	bed   *bed
	watch *checker.Watcher
	rows  []row
}

// Run plays a storm. Its error is ErrBroken when an invariant broke, and another one when the
// storm could not be played. Load ends before rest is waited for, and everything else when Run returns.
func Run(ctx context.Context, o Options) error {
	r := &run{o: o}
	fmt.Fprintf(o.Out, "storm with seed %d, %s of %d kinds of misfortunes, %d Berths\n", o.Seed, o.Lasts, len(o.Kinds), o.Berths)
	var err error
	if r.bed, err = startBed(ctx, o); err != nil {
		return err
	}
	defer r.bed.stop()
	r.watch = checker.NewWatcher(r.bed.client, checker.Config{
		GroupLabel: groupLabel, Patience: patience,
		WholeNode: func(g string) bool { return slices.Contains(wholeGroups, g) }, Gang: gangOf,
		Serves: serves, Extended: map[v1.ResourceName]string{devices.ExtendedResource: devices.Class},
	})
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { r.watch.Run(ctx) })
	defer watching.Wait()
	defer cancel()
	l := &load{client: r.bed.client, seed: o.Seed, watch: r.watch, devices: o.Devices, gangs: r.bed.gangs}
	if err := l.start(ctx); err != nil {
		return err
	}
	if err := makeNamed(ctx, r.bed.client); err != nil {
		return err
	}
	loading, calm := context.WithCancel(ctx)
	var creating sync.WaitGroup
	creating.Go(func() { l.run(loading) })
	defer creating.Wait()
	defer calm()
	if err := r.play(ctx); err != nil {
		return err
	}
	calm()
	creating.Wait()
	if err := r.rest(ctx, l); err != nil {
		return err
	}
	return errors.Join(r.summary(), r.bed.secretsInLogs())
}

// play has one misfortune after the other until the time is over.
func (r *run) play(ctx context.Context) error {
	first := r.strikes()
	if err := waitFor(ctx, time.Minute, "pods to be placed before the storm", func() bool { return r.binds() > 20 }); err != nil {
		return fmt.Errorf("%w; the Berths' logs end with\n%s", err, r.bed.tails())
	}
	header(r.o.Out)
	end := time.Now().Add(r.o.Lasts)
	for s := range first {
		if time.Now().After(end) && !r.o.mustGoOn(s) {
			break
		}
		row, err := r.step(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = r.bed.broken()
		}
		if err != nil {
			return fmt.Errorf("seed %d, line %q: %w", r.o.Seed, s, err)
		}
		r.rows = append(r.rows, row)
		row.print(r.o.Out)
	}
	return nil
}

// mustGoOn reports whether a step is to be played though the time is over. The first round of a plan has each kind
// once.
func (o *Options) mustGoOn(s Step) bool { return o.Each && s.Number <= len(o.Kinds) }

// strikes yields the plan, without an end: the times say where it ends.
func (r *run) strikes() func(func(Step) bool) {
	return func(yield func(Step) bool) {
		for _, s := range Plan(r.o.Seed, 10_000, r.o.Kinds) {
			if !yield(s) {
				return
			}
		}
	}
}

// step plays one line of the plan: calm, the misfortune, and until placements have resumed. The checker
// forgives what lasts from the misfortune's beginning until it is over.
func (r *run) step(ctx context.Context, s Step) (row, error) {
	pause(ctx, breather)
	m := find(s.Kind)
	out := row{step: s, misfortune: m, before: r.memory(), restarts: -r.restarts(), binds: -r.binds()}
	violations := len(r.violations())
	fmt.Fprintf(r.o.Out, "%s: %s …\n", s, m.what)
	r.watch.Do(func(h *checker.History) { h.Disturb() })
	from, err := m.strike(ctx, r, s)
	if err != nil {
		return row{}, err
	}
	out.binds += r.binds()
	out.silence, out.stuck = r.resumed(ctx, from)
	out.after = r.memory()
	out.restarts += r.restarts()
	out.violations = r.violations()[violations:]
	return out, nil
}

// resumed waits until placements have resumed since a time and no pod waits that fits, or until
// the checker has called that one lost. It returns how long nothing was placed since the time,
// and whether nothing was for stuckAfter.
func (r *run) resumed(ctx context.Context, from time.Time) (silence time.Duration, stuck bool) {
	over := time.Now()
	r.watch.Do(func(h *checker.History) { h.Calm(over) })
	for resumed := false; ctx.Err() == nil; {
		pause(ctx, 50*time.Millisecond)
		now := time.Now()
		var fitting int
		var last time.Time
		r.watch.Do(func(h *checker.History) {
			if !resumed {
				silence, last = h.Silence(from, now)
			}
			fitting = h.Fitting(now, breather)
		})
		switch {
		case resumed && (fitting == 0 || now.Sub(over) > patience+2*breather):
			return silence, false
		case !resumed && now.Sub(over) > stuckAfter:
			return silence, true
		}
		resumed = resumed || last.After(over) && now.Sub(over) > breather && now.Sub(last) < time.Second
	}
	return silence, false
}

// rest waits until the cluster has come to rest, with and then without pods, and notes what
// isn't as it has to be.
func (r *run) rest(ctx context.Context, l *load) error {
	row := row{step: Step{Kind: "rest"}, misfortune: &misfortune{kind: "rest"}, before: r.memory(), restarts: -r.restarts()}
	violations := len(r.violations())
	fmt.Fprintln(r.o.Out, "nobody creates anything any more; waiting for rest …")
	unrest := ""
	err := waitFor(ctx, restWithin, "rest", func() bool {
		r.watch.Do(func(h *checker.History) { unrest = h.Unrest(time.Now()) })
		return unrest == ""
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.watch.Do(func(h *checker.History) { h.Rest(time.Now()) })
	}
	fmt.Fprintln(r.o.Out, "deleting all pods; waiting until no node and no claim with devices is left …")
	clearing, cancel := context.WithTimeout(ctx, restWithin)
	defer cancel()
	if err := l.clear(clearing); err != nil {
		return fmt.Errorf("deleting all pods: %w", err)
	}
	if err := waitFor(ctx, restWithin, "nodes to go", func() bool {
		left := 0
		r.watch.Do(func(h *checker.History) { left = h.Left() })
		return left == 0
	}); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		r.watch.Do(func(h *checker.History) { h.Rest(time.Now()); h.Empty(time.Now()) })
	}
	row.after = r.memory()
	row.restarts += r.restarts()
	row.violations = r.violations()[violations:]
	r.rows = append(r.rows, row)
	row.print(r.o.Out)
	return r.bed.broken()
}

// binds returns how many pods were bound so far.
func (r *run) binds() (n int) {
	r.watch.Do(func(h *checker.History) { n = h.Binds() })
	return n
}

// violations returns those that the checker has found so far.
func (r *run) violations() (out []checker.Violation) {
	r.watch.Do(func(h *checker.History) { out = h.Violations() })
	return out
}

// memory returns the memory of each Berth in MiB.
func (r *run) memory() []int64 {
	var out []int64
	for _, b := range r.bed.berths {
		out = append(out, b.rss())
	}
	return out
}

// restarts returns how often Berths were started.
func (r *run) restarts() (n int) {
	for _, b := range r.bed.berths {
		_, starts := b.now()
		n += starts
	}
	return n
}
