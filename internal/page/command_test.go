package page

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// TestUIWaitsForALeader: at the start nobody may lead yet, which ends by itself. Whatever else is wrong ends the command.
func TestUIWaitsForALeader(t *testing.T) {
	kubeconfig := kubeconfigOf(t, leaseServer(t, func() int { return http.StatusOK }))
	var log bytes.Buffer
	o := &options{again: time.Hour}
	o.from.Kubeconfig, o.from.Lease = kubeconfig, "kube-system/berth"
	h, err := o.answers(t.Context(), &log, func(err error) { t.Error(err) })
	if err != nil || !strings.Contains(log.String(), "no leader: the Lease kube-system/berth has no holder") || !strings.Contains(log.String(), "The page waits until an instance leads.") {
		t.Fatalf("it says %q and returns %v", log.String(), err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"meta", nil))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), `{"error":"no leader: the Lease`) {
		t.Errorf("the page is told %d %s", w.Code, w.Body)
	}
	other := &options{}
	other.from.Kubeconfig, other.from.Lease = kubeconfig, "kube-system/none"
	if _, err := other.answers(t.Context(), &log, func(error) {}); err == nil || !strings.Contains(err.Error(), "no Lease kube-system/none") {
		t.Errorf("without a Lease it returns %v", err)
	}
}

// leaseServer starts an API server that has one Lease, without a holder, and answers with a status that may change.
func leaseServer(t *testing.T, status func() int) *httptest.Server {
	t.Helper()
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"kube-system","name":"berth"},"spec":{}}`
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system/leases/berth") {
			http.NotFound(w, r)
			return
		}
		if code := status(); code != http.StatusOK {
			w.WriteHeader(code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(lease))
	}))
	t.Cleanup(server.Close)
	return server
}

// kubeconfigOf writes a kubeconfig for a server, and returns its path.
func kubeconfigOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"me": {Token: "secret"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "me"}},
		CurrentContext: "c",
	}, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// shared is a text that several goroutines write.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestUIGivesUpLater: the page waits for a leader until the right to read the Lease is taken away, or until the user is no
// longer known, which ends the command with the exit code of errors. After each answer 401 but the last it says that it
// still waits.
func TestUIGivesUpLater(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusUnauthorized} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			var asked atomic.Int32
			o := &options{again: 10 * time.Millisecond}
			o.from.Kubeconfig, o.from.Lease = kubeconfigOf(t, leaseServer(t, func() int {
				if asked.Add(1) == 1 {
					return http.StatusOK
				}
				return code
			})), "kube-system/berth"
			var out strings.Builder
			var log shared
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it ends by itself, long before
			defer cancel()
			err := o.run(ctx, &out, &log)
			if err == nil || term.ExitCode(err) != term.ExitError || !strings.Contains(err.Error(), "kube") {
				t.Fatalf("it ends with %v, exit code %d, want %d", err, term.ExitCode(err), term.ExitError)
			}
			waits := map[int]int{http.StatusForbidden: 0, http.StatusUnauthorized: maxUnauthenticated - 1}[code]
			if got := strings.Count(log.String(), "rejects the credentials"); got != waits {
				t.Errorf("it says %d times that it waits although it was refused, want %d", got, waits)
			}
			if !strings.Contains(log.String(), "The page waits until an instance leads.") || !strings.HasPrefix(out.String(), "http://127.0.0.1:") {
				t.Errorf("before, it says %q and prints %q, want that it waits, and an address", log.String(), out.String())
			}
		})
	}
}

// TestUISaysAgainWhatItWaitsFor with each tick, until somebody leads or it can't end.
func TestUISaysAgainWhatItWaitsFor(t *testing.T) {
	none := errors.New("no leader")
	unknown := fmt.Errorf("querying Berth: %w", &net.DNSError{Err: "no such host", Name: "berth.example", IsNotFound: true})
	refused := fmt.Errorf("reading the Lease: %w", apierrors.NewUnauthorized("not known"))
	forbidden := fmt.Errorf("reading the Lease: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "berth", nil))
	for _, x := range []struct {
		name  string
		fails []error // of one attempt after the other; then it succeeds
		end   error   // that it returns, the last of fails
	}{
		{"until an instance leads", []error{none, none}, nil},
		{"until it can't end", []error{none, forbidden}, forbidden},
		{"while the name isn't known, as without a VPN", []error{none, unknown, unknown, unknown, unknown}, nil},
		{"until it was refused thrice, one after the other", []error{refused, refused, none, refused, refused, refused}, refused},
		{"when what was refused is accepted again", []error{refused, refused}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			var log strings.Builder
			n := 0
			err := await(t.Context(), func(context.Context) error {
				n++
				if n > len(x.fails) {
					return nil
				}
				return x.fails[n-1]
			}, time.NewTicker(time.Millisecond), &log)
			if !errors.Is(err, x.end) || x.end == nil && err != nil {
				t.Errorf("it returns %v, want %v", err, x.end)
			}
			var want []string // the ends of its lines
			for _, err := range x.fails {
				want = append(want, ": "+err.Error())
			}
			if want = append(want, "Berth answers now."); x.end != nil {
				want = want[:len(x.fails)-1]
			}
			said := strings.Split(strings.TrimSpace(log.String()), "\n")
			if !slices.EqualFunc(said, want, strings.HasSuffix) {
				t.Errorf("it says %q, want lines that end with %q", said, want)
			}
		})
	}
}

// TestUIGivesUp at once where waiting can't help: nothing is served then, and the exit code is that of errors.
func TestUIGivesUp(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	refusing := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	for _, x := range []struct {
		name, server string
		insecure     bool
		want         string
	}{
		{"a name that isn't known", "https://no-such-host.invalid", true, "check --server"},
		{"a server without TLS", "https" + strings.TrimPrefix(plain.URL, "http"), true, "check --server"},
		{"a certificate that nobody vouches for", refusing.URL, false, "certificate"},
		{"no right", refusing.URL, true, "not authorized to get /api/v1alpha1/meta"},
	} {
		t.Run(x.name, func(t *testing.T) {
			o := &options{}
			o.from.Server, o.from.Insecure, o.from.Lease = x.server, x.insecure, "kube-system/berth"
			if !x.insecure {
				o.from.TokenFile = filepath.Join(t.TempDir(), "token")
				if err := os.WriteFile(o.from.TokenFile, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out, log strings.Builder
			err := o.run(t.Context(), &out, &log)
			if err == nil || !strings.Contains(err.Error(), x.want) || out.Len() > 0 {
				t.Fatalf("it prints %q and returns %v, want %q", &out, err, x.want)
			}
			if code := term.ExitCode(err); code != term.ExitError {
				t.Errorf("%v: exit code %d, want %d", err, code, term.ExitError)
			}
			if reach.NoLeader(err) {
				t.Errorf("%v: it counts as one that waiting ends", err)
			}
		})
	}
}
