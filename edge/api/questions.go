package api

import (
	"context"
	"errors"
	"sync"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/berthproject/berth/core"
)

const (
	// tick is for how long an answer is shared.
	tick = 2 * time.Second
	// idleTimes is for how many times what a question took the core has no other. Questions take 1/150 of its time,
	// so that of 100 placements 99 meet none: p99 doesn't depend on how many viewers there are, nor on what they ask.
	idleTimes = 149
	// ahead is how much of that time questions may take in advance: someone who opens a page, or one page after the
	// other, isn't kept waiting when nobody has asked for a while. It stands for 200 ms of the core's time, 1/150 of half a
	// minute.
	ahead = 30 * time.Second
	// pagesTick is for how long the pages after the first share an answer: they are of one snapshot, and who reads a long
	// list page by page has the core make it once.
	pagesTick = 10 * time.Second
	// maxIdle is how long a question waits for that at most, so that it is answered before questionTimeout in a
	// cluster, too, in which one takes longer than 27 ms. There questions take more than 1/150: a fifth, if each takes a
	// second.
	maxIdle = 4 * time.Second
	// keptAnswers is how many answers are kept at most.
	keptAnswers = 256
	// questionTimeout is how long a question waits for the core.
	questionTimeout = 10 * time.Second
)

// errBusy says that the core had no time for a question.
var errBusy = errors.New("the core is busy, or other queries are being answered; try again")

// questions puts questions to the core, and shares the answers.
type questions struct {
	ask func(context.Context, func(*core.Core)) bool
	now func() time.Time
	// shown maps the time of an answer to the cluster's clock: of a run that is over it is the run's, since
	// whoever reads that a pod has waited since January counts from there.
	shown func(time.Time) time.Time
	// idle is the least time that the core has for itself between two questions, in multiples of what
	// the first took.
	idle time.Duration
	line *line // who is next

	mu      sync.Mutex
	answers map[string]*answer
	// asked is how often the core was asked.
	asked int
}

// answer is one answer, or one in the making.
type answer struct {
	*waiter
	kept  time.Duration // for how long after at it is kept
	done  chan struct{} // closed when the rest is set
	at    time.Time
	value any
	err   error
}

// newQuestions returns questions that leave the core its time. now is the clock by which answers grow old; shown is
// explained in questions.
func newQuestions(ask func(context.Context, func(*core.Core)) bool, now func() time.Time, shown func(time.Time) time.Time) *questions {
	return &questions{ask: ask, now: now, shown: shown, idle: idleTimes, line: newLine(now, overviewKey), answers: map[string]*answer{}}
}

// pageOf is of for a list that is read page by page. A request for a page after the first takes an answer as old as pagesTick.
func (q *questions) pageOf(r *request, key string, question func(*core.Core) (any, error)) (any, time.Time, error) {
	age := tick
	if r.query.Get("continue") != "" {
		age = pagesTick
	}
	return q.ofAge(r.Context(), key, age, pagesTick, question)
}

// preparedPageOf is pageOf, with a value that is made of the core's answer, once, and not in the core's goroutine.
func (q *questions) preparedPageOf(r *request, key string, question func(*core.Core) (any, error), prepare func(any) any) (any, time.Time, error) {
	x, at, err := q.pageOf(r, key, func(c *core.Core) (any, error) {
		raw, err := question(c)
		return sync.OnceValue(func() any { return prepare(raw) }), err
	})
	if err != nil {
		return nil, at, err
	}
	return x.(func() any)(), at, nil
}

// of returns the answer to a question that is known by a key, and when the core was asked. Those who ask
// the same within a tick share one answer. The value must not be changed; of an error of question it is nil.
// question runs in the goroutine that owns the core: what takes long and needs no core comes later.
func (q *questions) of(ctx context.Context, key string, question func(*core.Core) (any, error)) (any, time.Time, error) {
	return q.ofAge(ctx, key, tick, tick, question)
}

// ofAge is of, of an answer that is no older than age, and that is kept for others who take one so old.
func (q *questions) ofAge(ctx context.Context, key string, age, kept time.Duration, question func(*core.Core) (any, error)) (any, time.Time, error) {
	user := ""
	if u, known := apirequest.UserFrom(ctx); known {
		user = u.GetName()
	}
	a, mine := q.claim(key, user, age, kept)
	// No answer is made while the core is waited for, so others may have the slot.
	slot := slotOf(ctx)
	if !a.over() {
		slot.leave()
	}
	if mine {
		// Others may wait for the answer when whoever has asked first goes away.
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), questionTimeout)
		defer cancel()
		q.answer(asking, a, question)
	} else {
		q.line.join(a.waiter, user)
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, time.Time{}, errBusy
	}
	if !slot.take(ctx) {
		return nil, time.Time{}, errBusy
	}
	return a.value, q.shown(a.at), a.err
}

// claim returns the answer of a key that is no older than age, and whether the caller has to make it.
func (q *questions) claim(key, user string, age, kept time.Duration) (a *answer, mine bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.answers[key]; a != nil && (!a.over() || q.now().Sub(a.at) < age) {
		return a, false
	}
	q.forget(len(q.answers) >= keptAnswers)
	a = &answer{waiter: newWaiter(key, user), kept: kept, done: make(chan struct{})}
	// The first answer starts the sweep, and the sweep ends itself with the last: without viewers there is no timer.
	if q.answers[key] = a; len(q.answers) == 1 {
		time.AfterFunc(5*tick, q.sweep)
	}
	return a, true
}

// over reports whether the answer has been given.
func (a *answer) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// forget drops answers that are too old to share, and with all every one that has been given. The caller
// holds mu.
func (q *questions) forget(all bool) {
	for key, a := range q.answers {
		if a.over() && (all || q.now().Sub(a.at) >= a.kept) {
			delete(q.answers, key)
		}
	}
}

// sweep drops old answers until there are none: without viewers nothing is kept.
func (q *questions) sweep() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.forget(false); len(q.answers) > 0 {
		time.AfterFunc(5*tick, q.sweep)
	}
}

// answer asks the core, when it is the caller's turn and the core had some time for itself.
func (q *questions) answer(ctx context.Context, a *answer, question func(*core.Core) (any, error)) {
	// Whoever waits is woken however this ends; without an answer of the core they get errBusy.
	defer close(a.done)
	a.at, a.err = q.now(), errBusy
	if !q.line.wait(ctx, a.waiter) {
		return
	}
	var idle time.Duration
	defer func() { q.line.end(idle) }()
	got := make(chan struct{})
	if !q.ask(ctx, func(c *core.Core) {
		defer close(got)
		began := q.now()
		a.value, a.err = question(c)
		a.at = q.now()
		idle = min(q.idle*a.at.Sub(began), maxIdle)
	}) {
		return
	}
	// ask may return before the question has been put to its end.
	<-got
	q.mu.Lock()
	q.asked++
	q.mu.Unlock()
}
