package live

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sharers returns binds of n pods that share a claim.
func sharers(n int) (out []claimsOfBind) {
	for i := range n {
		b := deviceBind()
		b.Name, b.UID = fmt.Sprint("p", i), types.UID(fmt.Sprint("p", i))
		out = append(out, claimsOfBind{bind: &b})
	}
	return out
}

// prepareAll prepares binds at the same time, each after a while of its own, and returns what each has left to
// take back, and its error.
func prepareAll(t *testing.T, b *deviceBinder, binds []claimsOfBind, apart time.Duration) (prepared []*claimsOfBind, errs []error) {
	t.Helper()
	prepared, errs = make([]*claimsOfBind, len(binds)), make([]error, len(binds))
	var all sync.WaitGroup
	for i := range binds {
		all.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			prepared[i], errs[i] = b.prepare(anHour(t), t.Context(), binds[i].bind)
		})
	}
	all.Wait()
	return prepared, errs
}

// TestPodsThatShareAClaimWriteItTogether: of five pods whose binds begin while the first one's is written, one
// writes for all others. Nobody meets a conflict.
func TestPodsThatShareAClaimWriteItTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newClaimServer(storedClaim(""))
		s.lag = true // the cache knows nothing of the writes
		s.slow = time.Second
		b, _, _ := s.binder()
		_, errs := prepareAll(t, b, sharers(5), 100*time.Millisecond)
		if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
			t.Error(errs)
		}
		if got, want := strings.Join(s.calls, ", "), "update, update status"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
		if got := s.claim(t, "c"); len(got.Status.ReservedFor) != 5 {
			t.Errorf("the claim is reserved for %v, want five pods", got.Status.ReservedFor)
		}
	})
}

// TestAClaimIsReservedForAsManyAsItMay: 300 pods bring the same claim at once, which 256 may use. That many get
// it, by one write; the others are refused as the API server refuses kube-scheduler, and nothing of theirs is left.
func TestAClaimIsReservedForAsManyAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods, most = 300, resourcev1.ResourceClaimReservedForMaxSize
		s := newClaimServer(storedClaim(""))
		s.slow = time.Second
		b, _, _ := s.binder()
		prepared, errs := prepareAll(t, b, sharers(pods), 0)
		var refused []*claimsOfBind
		for i, err := range errs {
			if err == nil {
				continue
			}
			if want := fmt.Sprintf("Too many: %d: must have at most %d items", most+1, most); !strings.Contains(err.Error(), want) {
				t.Errorf("pod %d: %v, want %q", i, err, want)
			}
			refused = append(refused, prepared[i])
		}
		if len(refused) != pods-most {
			t.Errorf("%d pods were refused, want %d", len(refused), pods-most)
		}
		if got := strings.Count(strings.Join(s.calls, ","), "update status"); got > 2+pods-most {
			t.Errorf("%d writes of the status, want one or two for all that fit, and one for each that doesn't", got)
		}
		for _, p := range refused {
			if err := b.takeBack(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
		if got := s.claim(t, "c"); len(got.Status.ReservedFor) != most {
			t.Errorf("the claim is reserved for %d pods, want %d", len(got.Status.ReservedFor), most)
		}
	})
}

// TestPodsThatShareAClaimTakeTheirTurns: pods that come one after the other add their reservations to what the
// one before has left, though the cache doesn't have it.
func TestPodsThatShareAClaimTakeTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newClaimServer(storedClaim(""))
		s.lag = true
		s.slow = time.Second
		b, _, _ := s.binder()
		prepared, errs := prepareAll(t, b, sharers(3), 10*time.Second)
		if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
			t.Error(errs)
		}
		if got, want := strings.Join(s.calls, ", "), "update, update status, update status, update status"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
		s.mu.Lock()
		s.seen = s.version
		s.mu.Unlock()
		for _, p := range prepared {
			b.settle(t.Context(), p)
		}
		if len(b.shared.turns) > 0 {
			t.Errorf("%d claims are remembered when all binds are over", len(b.shared.turns))
		}
	})
}

// TestWhatOthersHaveWrittenIsTakenBack: a bind that fails takes back its reservation, also when another bind
// has written it, and also when it was refused itself.
func TestWhatOthersHaveWrittenIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newClaimServer(storedClaim(""))
		s.slow = time.Second
		b, _, _ := s.binder()
		binds := sharers(3)
		// The last one expects other devices: it is refused after the others have written for it.
		elsewhere := storedClaim("b")
		binds[2].bind.DeviceClaims = []*resourcev1.ResourceClaim{elsewhere}
		prepared, errs := prepareAll(t, b, binds, 100*time.Millisecond)
		if errs[0] != nil || errs[1] != nil || errs[2] == nil {
			t.Fatal(errs)
		}
		if got := s.claim(t, "c"); !reservedFor(got, "p2") {
			t.Errorf("the claim is reserved for %v: the case shows nothing", got.Status.ReservedFor)
		}
		for _, i := range []int{1, 2} {
			if err := b.takeBack(t.Context(), prepared[i]); err != nil {
				t.Error(err)
			}
		}
		got := s.claim(t, "c")
		if got.Status.Allocation == nil || len(got.Status.ReservedFor) != 1 || !reservedFor(got, "p0") {
			t.Errorf("the claim has %+v, want it reserved for p0 alone", got.Status)
		}
	})
}
