package live

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core/step"
)

// TestTheCoreIsToldTheAPIServersTime has answers of an API server whose clock is ahead by an hour.
func TestTheCoreIsToldTheAPIServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead = time.Hour
		date := true
		s := &serverTime{}
		transport := &datedTransport{s, roundTripperFunc(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			if date {
				w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			}
			return w.Result(), nil
		})}
		answer := func() {
			t.Helper()
			resp, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		var got []time.Duration // how far each time that was told is ahead
		put := func(in step.Input) { got = append(got, time.Until(in.(step.ServerTime).At).Round(time.Second)) }
		want := func(n int) {
			t.Helper()
			if len(got) != n {
				t.Fatalf("the core was told %d times, want %d", len(got), n)
			}
			for _, x := range got {
				if x != ahead {
					t.Errorf("the core was told a time that is ahead by %s, want %s", x, ahead)
				}
			}
		}
		answer() // while nobody is told
		time.Sleep(10 * time.Second)
		s.tell(put)
		want(1)
		answer() // a moment later
		want(1)
		time.Sleep(tellTimeEvery)
		answer()
		want(2)
		time.Sleep(tellTimeEvery)
		date = false
		answer() // says nothing
		want(2)
		date = true
		answer()
		want(3)
	})
}

// TestClientsReadTheAPIServersTime has a client list pods of a server whose clock is wrong.
func TestClientsReadTheAPIServersTime(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", at.Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	clients, err := newClients(&rest.Config{Host: server.URL}, func() bool { return false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told []step.Input
	clients.time.tell(func(in step.Input) { told = append(told, in) })
	_ = clients.watch.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes").Do(t.Context())
	if len(told) != 1 || told[0] != (step.ServerTime{At: at}) {
		t.Errorf("the core was told %v, want %s", told, at)
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
