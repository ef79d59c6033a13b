package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// This file is what probes learn of a live Berth: which caches it hasn't filled yet, and
// whether one of its goroutines is stuck.

// Health is of one live Berth. It is made before Run, so that probes are answered from the
// start. Its methods may be called by several goroutines.
type Health struct {
	autoscales bool // it has a provider, and what the autoscaler reads is watched

	mu     sync.Mutex
	caches map[string]cacheHealth // by name; guarded by mu
	tasks  map[goroutine]task     // what each is doing; guarded by mu
}

// cacheHealth is how far the first list of a kind of object is.
type cacheHealth struct {
	synced func() bool // nil while it isn't watched
	err    error       // the last of listing or watching it
}

// Names of caches. headroomCache stands for all kinds that ask for headroom, which a cluster
// may lack.
const headroomCache = "headroom"

var cacheNames = []string{
	"pods", "nodes", "services", "replicationcontrollers", "replicasets", "statefulsets", "namespaces",
	"persistentvolumeclaims", "persistentvolumes", "poddisruptionbudgets", "storageclasses", "csinodes", "csidrivers",
	"csistoragecapacities", "volumeattachments", "deviceclasses", "resourceslices", "resourceclaims", "devicetaintrules", "podgroups",
}

// scalingCaches are those of what only the autoscaler reads.
var scalingCaches = []string{"jobs", "daemonsets", headroomCache}

// NewHealth returns the health of a Berth that hasn't begun. autoscales says whether it will
// have a provider.
func NewHealth(autoscales bool) *Health {
	h := &Health{autoscales: autoscales, caches: map[string]cacheHealth{}, tasks: map[goroutine]task{}}
	for _, name := range cacheNames {
		h.caches[name] = cacheHealth{}
	}
	if autoscales {
		for _, name := range scalingCaches {
			h.caches[name] = cacheHealth{}
		}
	}
	return h
}

// Caches returns the names of all caches, sorted. They don't change.
func (h *Health) Caches() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.caches))
}

// Cache returns nil when what exists of a kind has been delivered to the core, otherwise what is
// known of why not.
func (h *Health) Cache(name string) error {
	h.mu.Lock()
	c := h.caches[name]
	h.mu.Unlock()
	switch {
	case c.synced != nil && c.synced():
		return nil
	case c.err != nil:
		return fmt.Errorf("%s not listed yet: %w", name, c.err)
	case c.synced == nil:
		return fmt.Errorf("%s not watched yet", name)
	}
	return fmt.Errorf("%s not listed yet", name)
}

// watched makes Cache ask synced from now on.
func (h *Health) watched(name string, synced func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.caches[name]
	c.synced = synced
	h.caches[name] = c
}

// outcomesOf returns what is told how the attempts to list and to watch a kind end.
func (h *Health) outcomesOf(name string) func(error) {
	return func(err error) {
		if err != nil {
			h.failed(name, err)
		}
	}
}

// failed notes that a kind could not be listed or watched. It will be tried again.
func (h *Health) failed(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.caches[name]
	c.err = err
	h.caches[name] = c
}

// goroutine is one that must come to an end with what it does.
type goroutine string

const (
	loopGoroutine    goroutine = "loop"
	plannerGoroutine goroutine = "planner"
)

// task is what a goroutine is doing.
type task struct {
	what  string
	since time.Time
	bound time.Duration // how long it may take
}

// stuckAfter is how long the loop may take for one thing: a Step with everything that is handed
// out, a question, a look at the core. A Step of a large cluster takes milliseconds, the first
// one after taking over up to seconds.
const stuckAfter = 2 * time.Minute

// begin notes what a goroutine does now; end, that it has ended.
func (h *Health) begin(g goroutine, what string, bound time.Duration) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks[g] = task{what, time.Now(), bound}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.tasks, g)
	}
}

// stuck returns the goroutines that take longer than they may, by name, with what they do.
func (h *Health) stuck() map[goroutine]task {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[goroutine]task{}
	for g, t := range h.tasks {
		if time.Since(t.since) > t.bound {
			out[g] = t
		}
	}
	return out
}

// Alive returns nil unless a goroutine is stuck: only a restart helps then.
func (h *Health) Alive() error {
	var errs []error
	stuck := h.stuck()
	for _, g := range slices.Sorted(maps.Keys(stuck)) {
		t := stuck[g]
		errs = append(errs, fmt.Errorf("the %s has been stuck in %s for %s; the log has its stack", g, t.what, time.Since(t.since).Round(time.Second)))
	}
	return errors.Join(errs...)
}
