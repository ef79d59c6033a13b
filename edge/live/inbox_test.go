package live

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/step"
)

// TestInboxKeepsOrderAndWakesOnce puts three inputs, of which the first wakes.
func TestInboxKeepsOrderAndWakesOnce(t *testing.T) {
	b := newInbox()
	for i := range 3 {
		b.put(step.PodGone{UID: types.UID(fmt.Sprint(i))})
	}
	if n := len(b.signal); n != 1 {
		t.Errorf("%d wake-ups wait, want 1", n)
	}
	<-b.signal
	if got, want := fmt.Sprint(b.take()), "[{0} {1} {2}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := b.take(); len(got) > 0 || len(b.signal) > 0 {
		t.Errorf("after it was emptied: %v, %d wake-ups", got, len(b.signal))
	}
	b.put(step.PodGone{})
	if len(b.signal) != 1 {
		t.Error("an input that comes after the inbox was emptied wakes nobody")
	}
}

// TestInboxLosesNothing has many goroutines put while one takes when it is woken.
func TestInboxLosesNothing(t *testing.T) {
	b := newInbox()
	const writers, each = 8, 500
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				b.put(step.PodGone{UID: types.UID(fmt.Sprintf("%d-%04d", w, i))})
			}
		})
	}
	last := map[string]string{}
	for got := 0; got < writers*each; {
		<-b.signal
		for _, in := range b.take() {
			uid := string(in.(step.PodGone).UID)
			if uid <= last[uid[:1]] {
				t.Errorf("%s comes after %s", uid, last[uid[:1]])
			}
			last[uid[:1]] = uid
			got++
		}
	}
	wg.Wait()
}
