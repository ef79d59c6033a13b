package queue_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/queue"
)

// model is the queue as a list of pods that is searched for every question: no heap,
// no counter, no index. The property test compares the queue with it.
type model struct {
	cfg     queue.Config
	pods    []*modelPod
	classes []*modelClass // those of which pods wait, or waited until their probe was taken
	next    int
}

type modelPod struct {
	name               string
	priority           int
	queued             int64
	sequence           int
	class              string
	stage              queue.Stage
	attempts, failures int
	until              int64
	afterError         bool
	nominated, swept   bool
	rejected           bool        // it was, at least once
	probeOf, waitsWith *modelClass // waitsWith of unschedulable and held pods
}

type modelClass struct {
	name      string
	state     string
	since     int64
	diagnosis *engine.Diagnosis
}

// The states of a class.
const (
	waits            = "waiting"
	probesFit        = "probing for a fit"
	probesPreemption = "probing for preemption"
	probesLeftovers  = "probing leftovers"
	isExhausted      = "exhausted"
)

func (m *model) class(name string) *modelClass {
	for _, w := range m.classes {
		if w.name == name {
			return w
		}
	}
	return nil
}

// before is the order of the QueueSort plugin.
func before(a, b *modelPod) int {
	return cmp.Or(-cmp.Compare(a.priority, b.priority), cmp.Compare(a.queued, b.queued), cmp.Compare(a.sequence, b.sequence))
}

// where returns the pods that meet a condition, in the order of trying.
func (m *model) where(f func(*modelPod) bool) []*modelPod {
	var out []*modelPod
	for _, p := range m.pods {
		if f(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, before)
	return out
}

// unschedulable returns the pods of a class that wait and aren't held.
func (m *model) unschedulable(w *modelClass, nominated bool) []*modelPod {
	return m.where(func(p *modelPod) bool {
		return p.stage == queue.Unschedulable && p.waitsWith == w && p.nominated == nominated
	})
}

func (m *model) backoff(attempts int) int64 {
	d := m.cfg.InitialBackoff
	for range attempts - 1 {
		d = min(2*d, m.cfg.MaxBackoff)
	}
	return int64(min(d, m.cfg.MaxBackoff))
}

func (m *model) leftover() int64 { return max(int64(m.cfg.Leftover), 1) }

func (m *model) add(now int64, name, class string, priority int, gated bool) {
	p := &modelPod{name: name, class: class, priority: priority, queued: now, sequence: m.next, stage: queue.Active}
	if gated {
		p.stage = queue.Gated
	}
	m.next++
	m.pods = append(m.pods, p)
}

func (m *model) remove(p *modelPod) {
	m.takeOut(p)
	m.endProbe(p)
	m.pods = slices.DeleteFunc(m.pods, func(x *modelPod) bool { return x == p })
}

func (m *model) update(p *modelPod, class string, priority int, gated bool) {
	changed := class != p.class || priority != p.priority
	switch {
	case p.stage == queue.Held || gated && p.stage == queue.Gated:
		p.class = class
	case gated:
		m.takeOut(p)
		m.endProbe(p)
		p.class, p.stage = class, queue.Gated
	case !gated && (changed || p.stage == queue.Gated):
		m.takeOut(p)
		m.endProbe(p)
		p.class, p.swept = class, false
		m.try(p, queue.Active)
	}
	p.priority = priority
}

func (m *model) pop(now int64) *modelPod {
	for _, p := range m.pods {
		if p.stage == queue.Backoff && p.until <= now {
			m.try(p, queue.Active)
		}
	}
	next := m.where(func(p *modelPod) bool { return p.stage == queue.Active })
	if len(next) == 0 {
		next = m.where(func(p *modelPod) bool { return p.stage == queue.Backoff && !p.afterError })
	}
	if len(next) == 0 {
		return nil
	}
	next[0].stage = queue.InFlight
	return next[0]
}

func (m *model) fail(now int64, p *modelPod) {
	m.takeOut(p)
	p.attempts++
	p.failures++
	p.until = now + max(m.backoff(p.failures), 1)
	p.swept = false
	p.stage, p.afterError = queue.Backoff, true
}

// reject has a pod wait, as an unschedulable one or held.
func (m *model) reject(now int64, p *modelPod, d *engine.Diagnosis, stage queue.Stage) {
	p.attempts++
	p.until = now + m.backoff(p.attempts)
	w := m.class(p.class)
	if p.probeOf != w {
		m.endProbe(p)
	}
	p.probeOf = nil
	if w == nil {
		w = &modelClass{name: p.class, since: now}
		m.classes = append(m.classes, w)
	} else {
		if w.state != waits {
			w.since = now
		}
		if len(m.unschedulable(w, false)) > 0 && !d.Preemption().RuledOut {
			d = d.WithPreemption(w.diagnosis.Preemption())
		}
	}
	w.state, w.diagnosis = waits, d
	p.stage, p.waitsWith, p.rejected = stage, w, true
}

// releaseToWait has a held pod wait.
func (m *model) releaseToWait(now int64, p *modelPod, d *engine.Diagnosis) {
	m.takeOut(p)
	w := m.class(p.class)
	if w == nil {
		w = &modelClass{name: p.class, state: isExhausted}
		m.classes = append(m.classes, w)
	}
	if w.state == isExhausted {
		w.state, w.since, w.diagnosis = waits, now, d
	}
	p.stage, p.waitsWith = queue.Unschedulable, w
}

func (m *model) releaseToTry(now int64, p *modelPod) {
	m.takeOut(p)
	p.swept = false
	m.tryAfterBackoff(now, p)
}

func (m *model) activate(p *modelPod) {
	if p.stage == queue.Unschedulable || p.stage == queue.Held {
		m.takeOut(p)
		p.swept = false
		m.try(p, queue.Active)
	}
}

func (m *model) wakePod(now int64, p *modelPod) {
	m.takeOut(p)
	p.swept = false
	m.tryAfterBackoff(now, p)
}

func (m *model) wake(now int64, help func(class string) (engine.Help, *engine.Diagnosis)) (asked []string) {
	inOrder := slices.Clone(m.classes)
	slices.SortFunc(inOrder, func(a, b *modelClass) int {
		return slices.Index(classes, a.name) - slices.Index(classes, b.name)
	})
	for _, w := range inOrder {
		if w.state != waits || !slices.Contains(m.classes, w) {
			continue
		}
		asked = append(asked, w.name)
		var h engine.Help
		switch h, w.diagnosis = help(w.name); h {
		case engine.Fits:
			m.startProbing(now, w, probesFit)
		case engine.Preempts:
			m.startProbing(now, w, probesPreemption)
		}
		m.forget(w)
	}
	return asked
}

func (m *model) sweep(now int64) {
	for _, w := range slices.Clone(m.classes) {
		if w.state == waits && now-w.since >= m.leftover() {
			m.startProbing(now, w, probesLeftovers)
		}
	}
}

func (m *model) reclassify(p *modelPod, class string) {
	switch p.stage {
	case queue.Unschedulable:
		if class != p.class {
			m.takeOut(p)
			p.class, p.swept = class, false
			m.try(p, queue.Active)
		}
	case queue.Active, queue.Backoff:
		p.class = class
	}
}

func (m *model) startProbing(now int64, w *modelClass, state string) {
	w.state, w.since = state, now
	m.probe(w)
}

// probe tries the first pod of a woken class, one that isn't nominated if the
// class was woken to preempt.
func (m *model) probe(w *modelClass) {
	nominated := m.unschedulable(w, true)
	next := m.unschedulable(w, false)
	if w.state != probesPreemption {
		next = append(next, nominated...)
		slices.SortFunc(next, before)
	}
	switch {
	case len(next) > 0:
		p := next[0]
		p.waitsWith, p.probeOf, p.swept = nil, w, w.state == probesLeftovers
		m.tryAfterBackoff(w.since, p)
	case len(nominated) > 0:
		w.state, w.diagnosis = waits, w.diagnosis.WithPreemption(engine.Preemption{})
	default:
		w.state = isExhausted
		m.forget(w)
	}
}

func (m *model) endProbe(p *modelPod) {
	w := p.probeOf
	p.probeOf = nil
	if w != nil && w.state != waits {
		m.probe(w)
	}
}

func (m *model) takeOut(p *modelPod) {
	w := p.waitsWith
	p.stage, p.waitsWith = queue.InFlight, nil
	if w != nil {
		m.forget(w)
	}
}

// forget drops a class with which no pod waits.
func (m *model) forget(w *modelClass) {
	if !slices.ContainsFunc(m.pods, func(p *modelPod) bool { return p.waitsWith == w }) {
		m.classes = slices.DeleteFunc(m.classes, func(x *modelClass) bool { return x == w })
	}
}

func (m *model) try(p *modelPod, stage queue.Stage) {
	p.stage = stage
	if stage == queue.Active {
		p.afterError = false
	}
}

func (m *model) tryAfterBackoff(now int64, p *modelPod) {
	p.afterError = false
	if p.until > now {
		m.try(p, queue.Backoff)
	} else {
		m.try(p, queue.Active)
	}
}

// nextWake returns when something happens by itself, zero for never.
func (m *model) nextWake() time.Time {
	var at []int64
	for _, p := range m.pods {
		if p.stage == queue.Backoff {
			at = append(at, p.until)
		}
	}
	for _, w := range m.classes {
		if w.state == waits {
			at = append(at, w.since+m.leftover())
		}
	}
	if at == nil {
		return time.Time{}
	}
	return time.Unix(0, slices.Min(at))
}

// counts returns how many pods are at which stage, where kube-scheduler has them.
func (m *model) counts() (c queue.Counts) {
	for _, p := range m.pods {
		switch {
		case p.stage == queue.Active:
			c.Active++
		case p.stage == queue.Backoff:
			c.Backoff++
		case p.stage == queue.Gated || p.stage == queue.Held:
			c.Gated++
		case p.stage == queue.Unschedulable && p.waitsWith.state == waits:
			c.Unschedulable++
		case p.stage == queue.Unschedulable && p.until > p.waitsWith.since:
			c.Backoff++
		case p.stage == queue.Unschedulable:
			c.Active++
		}
	}
	return c
}
