package live

import (
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core/step"
)

// tellTimeEvery is how often the core is told of the API server's time.
const tellTimeEvery = time.Minute

// serverTime reads the API server's time from the Date of its answers and tells the core of it,
// which measures the ages of objects by it: a Node that was created by another clock isn't to seem
// late, nor one that has failed to seem young. The zero value tells nobody yet.
type serverTime struct {
	mu   sync.Mutex
	put  func(step.Input) // guarded by mu; nil while there is nobody to tell
	date time.Time        // guarded by mu; of the answer that was read last, zero before the first
	read time.Time        // guarded by mu; when that was, by this process's clock
}

// reading returns a client's configuration whose answers are read.
func (s *serverTime) reading(base *rest.Config) *rest.Config {
	out := rest.CopyConfig(base)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &datedTransport{s, next} })
	return out
}

// tell tells put the time from now on, and nobody else. s may be nil: then nothing is read.
func (s *serverTime) tell(put func(step.Input)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.put = put; !s.date.IsZero() {
		put(step.ServerTime{At: s.date.Add(time.Since(s.read))})
	}
}

// answered reads an answer, unless one was read lately.
func (s *serverTime) answered(resp *http.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.date.IsZero() && time.Since(s.read) < tellTimeEvery {
		return
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return // a proxy may leave it out
	}
	if s.date, s.read = at, time.Now(); s.put != nil {
		s.put(step.ServerTime{At: at})
	}
}

// datedTransport reads answers.
type datedTransport struct {
	time *serverTime
	next http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*datedTransport)(nil)

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *datedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *datedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		t.time.answered(resp)
	}
	return resp, err
}
