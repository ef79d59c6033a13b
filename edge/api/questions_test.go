package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authuser "k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/berthproject/berth/core"
)

// sameTime is for a live cluster: answers bear the time at which the core was asked.
func sameTime(t time.Time) time.Time { return t }

// TestViewersOfOneMomentShareAnAnswer, and without viewers the core isn't asked and nothing is kept.
func TestViewersOfOneMomentShareAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(func(_ context.Context, f func(*core.Core)) bool { f(nil); return true }, time.Now, sameTime)
		made := 0
		question := func(*core.Core) (any, error) { made++; time.Sleep(time.Millisecond); return made, nil }
		var viewers sync.WaitGroup
		for range 50 {
			viewers.Go(func() {
				if x, _, err := q.of(t.Context(), "a", question); err != nil || x != 1 {
					t.Errorf("got %v, %v", x, err)
				}
			})
		}
		viewers.Wait()
		if made != 1 {
			t.Errorf("the answer was made %d times", made)
		}
		time.Sleep(tick)
		if x, _, _ := q.of(t.Context(), "a", question); x != 2 {
			t.Errorf("a tick later the answer is %v, want another", x)
		}
		time.Sleep(time.Hour)
		if made != 2 || len(q.answers) != 0 {
			t.Errorf("an hour later there were %d answers, and %d are kept", made, len(q.answers))
		}
	})
}

// TestTheCoreHasTimeForItself: after questions that took long the next one waits, however many ask.
func TestTheCoreHasTimeForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked time.Duration // that questions took
		q := newQuestions(func(_ context.Context, f func(*core.Core)) bool { f(nil); return true }, time.Now, sameTime)
		began := time.Now()
		var viewers sync.WaitGroup
		for i := range 20 {
			viewers.Go(func() {
				for range 10 {
					_, _, _ = q.of(t.Context(), string(rune('a'+i)), func(*core.Core) (any, error) {
						time.Sleep(20 * time.Millisecond)
						asked += 20 * time.Millisecond
						return nil, nil
					})
				}
			})
		}
		viewers.Wait()
		if all := time.Since(began); asked == 0 || asked*idleTimes > all+ahead+idleTimes*20*time.Millisecond {
			t.Errorf("questions took %s of %s, want at most 1/%d", asked, all, idleTimes+1)
		}
	})
}

// TestAPageIsOpenedAtOnce: when nobody has asked for a while, what a page asks for isn't kept waiting; who asks on is.
func TestAPageIsOpenedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(func(_ context.Context, f func(*core.Core)) bool { f(nil); return true }, time.Now, sameTime)
		ask := func(n int) time.Duration {
			began := time.Now()
			for i := range n {
				_, _, _ = q.of(t.Context(), string(rune('a'+i)), func(*core.Core) (any, error) {
					time.Sleep(20 * time.Millisecond)
					return nil, nil
				})
			}
			return time.Since(began)
		}
		if took := ask(8); took != 160*time.Millisecond {
			t.Errorf("8 questions took %s, want them answered at once", took)
		}
		if took := ask(26); took < 40*time.Second {
			t.Errorf("26 more took %s, want the core to have its time", took)
		}
		time.Sleep(time.Hour)
		if took := ask(8); took != 160*time.Millisecond {
			t.Errorf("8 questions took %s an hour later, want them answered at once", took)
		}
	})
}

// TestAViewerWhoLeaves takes no answer from the others, and one whose core is busy is told so.
func TestAViewerWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		q := newQuestions(func(ctx context.Context, f func(*core.Core)) bool {
			select {
			case <-free:
				f(nil)
				return true
			case <-ctx.Done():
				return false
			}
		}, time.Now, sameTime)
		question := func(*core.Core) (any, error) { return "answer", nil }
		leaving, leave := context.WithCancel(t.Context())
		var viewers sync.WaitGroup
		viewers.Go(func() { _, _, _ = q.of(leaving, "a", question) })
		synctest.Wait()
		viewers.Go(func() {
			if x, _, err := q.of(t.Context(), "a", question); err != nil || x != "answer" {
				t.Errorf("the one who stays got %v, %v", x, err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(free)
		viewers.Wait()
		free = make(chan struct{})
		if _, _, err := q.of(t.Context(), "b", question); !errors.Is(err, errBusy) {
			t.Errorf("of a busy core: %v", err)
		}
	})
}

// TestAnswersAreBounded: whoever asks about ever more objects takes no more memory.
func TestAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuestions(func(_ context.Context, f func(*core.Core)) bool { f(nil); return true }, time.Now, sameTime)
		for i := range 10 * keptAnswers {
			_, _, _ = q.of(t.Context(), string(rune(i)), func(*core.Core) (any, error) { return nil, nil })
			if len(q.answers) > keptAnswers {
				t.Fatalf("%d answers are kept", len(q.answers))
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestPagesOfOneListShareAnAnswer: whoever reads a list page by page takes one that is some ticks old, and whoever begins a
// list doesn't.
func TestPagesOfOneListShareAnAnswer(t *testing.T) {
	now := time.Unix(1, 0)
	q := newQuestions(func(_ context.Context, question func(*core.Core)) bool { question(nil); return true }, func() time.Time { return now }, sameTime)
	q.idle = 0
	ask := func(age time.Duration) {
		t.Helper()
		if _, _, err := q.ofAge(t.Context(), "nodes", age, pagesTick, func(*core.Core) (any, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
		if _, _, err := q.of(t.Context(), "other", func(*core.Core) (any, error) { return 2, nil }); err != nil { // which drops what is old
			t.Fatal(err)
		}
	}
	asked := func(want int) {
		t.Helper()
		if q.asked != want {
			t.Errorf("the core was asked %d times, want %d", q.asked, want)
		}
	}
	ask(tick)
	asked(2)
	now = now.Add(3 * tick)
	ask(pagesTick)
	asked(3) // the other alone
	ask(tick)
	asked(4)
	now = now.Add(pagesTick)
	ask(pagesTick)
	asked(6)
}

// turnsTaken records which questions were put to the core, in their order.
type turnsTaken struct {
	*questions
	mu   sync.Mutex
	keys []string
}

// newTurnsTaken returns questions that nothing is asked of yet.
func newTurnsTaken() *turnsTaken {
	return &turnsTaken{questions: newQuestions(func(_ context.Context, f func(*core.Core)) bool { f(nil); return true }, time.Now, sameTime)}
}

// since returns what was asked since the last call.
func (x *turnsTaken) since() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.keys
	x.keys = nil
	return out
}

// put asks a question of a user, which takes the core 0.7 s: the next is 4 s later. It is recorded as shown.
func (x *turnsTaken) put(t *testing.T, user, key, shown string) error {
	_, _, err := x.ofAge(apirequest.WithUser(t.Context(), &authuser.DefaultInfo{Name: user}), key, 0, tick, func(*core.Core) (any, error) {
		x.mu.Lock()
		x.keys = append(x.keys, shown)
		x.mu.Unlock()
		time.Sleep(700 * time.Millisecond)
		return nil, nil
	})
	return err
}

// hostile has users ask for ever more objects, as many at a time as they may, until the returned function is called. They are
// recorded by their names.
func (x *turnsTaken) hostile(t *testing.T, users ...string) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, name := range users {
		for i := range maxRenderingOfUser {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					_ = x.put(t, name, fmt.Sprint(name, i, " ", n), name)
				}
			})
		}
	}
	return func() { cancel(); all.Wait() }
}

// TestTheOverviewWaitsForOneQuestion at most, whoever asks for what; and between two of it there is another.
func TestTheOverviewWaitsForOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTurnsTaken()
		end := x.hostile(t, "a", "b", "c", "d")
		time.Sleep(time.Minute)
		for range 10 {
			x.since()
			if err, asked := x.put(t, "viewer", overviewKey, overviewKey), x.since(); err != nil || len(asked) > 2 {
				t.Errorf("there is an overview (%v) after %q", err, asked)
			}
			time.Sleep(tick)
		}
		streams, leave := context.WithCancel(t.Context()) // in which an overview is asked for all the time
		var viewer sync.WaitGroup
		viewer.Go(func() {
			for streams.Err() == nil {
				_ = x.put(t, "viewer", overviewKey, overviewKey)
			}
		})
		x.since()
		time.Sleep(time.Minute)
		asked := x.since()
		for i := range len(asked) - 1 {
			if asked[i] == overviewKey && asked[i+1] == overviewKey {
				t.Fatalf("nothing else is asked between two overviews: %q", asked)
			}
		}
		leave()
		viewer.Wait()
		end()
	})
}

// TestUsersTakeTurns: of users who ask as much as they may none has a second turn before each other has had one, and whoever
// comes is next.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTurnsTaken()
		end := x.hostile(t, "a", "b")
		time.Sleep(time.Minute)
		asked := x.since()
		for i := range len(asked) - 1 {
			if asked[i] == asked[i+1] {
				t.Fatalf("a user has two turns in a row: %q", asked)
			}
		}
		if err, asked := x.put(t, "c", "of c", "c"), x.since(); err != nil || len(asked) != 1 {
			t.Errorf("whoever comes is answered (%v) after %q", err, asked)
		}
		// A question doesn't wait for longer because somebody has asked it who has to wait.
		time.Sleep(time.Minute)
		x.since()
		var both sync.WaitGroup
		both.Go(func() { _ = x.put(t, "a", "of both", "both") })
		synctest.Wait()
		both.Go(func() {
			if err, asked := x.put(t, "d", "of both", "both"), x.since(); err != nil || len(asked) != 1 {
				t.Errorf("whoever joins a question is answered (%v) after %q", err, asked)
			}
		})
		both.Wait()
		end()
	})
}

// TestTurnsAreForgotten: names of users who have asked once don't pile up.
func TestTurnsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTurnsTaken()
		for i := range 3 * keptTurns {
			if err := x.put(t, fmt.Sprint(i), fmt.Sprint(i), ""); err != nil || len(x.line.served) > keptTurns {
				t.Fatalf("the turns of %d users are kept (%v)", len(x.line.served), err)
			}
		}
		time.Sleep(time.Hour)
	})
}
