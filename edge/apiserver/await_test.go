package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/test/testkit"
)

// lateServer is an API server that answers some requests in turn and then like one that runs.
type lateServer struct {
	attempts []attempt
	asked    []string // paths
}

// attempt is what becomes of a request: an error, an HTTP status, or no answer.
type attempt struct {
	err  error
	code int
	hang bool
}

// RoundTrip implements http.RoundTripper.
func (s *lateServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r.URL.Path)
	now := attempt{code: http.StatusOK}
	if len(s.attempts) > 0 {
		now, s.attempts = s.attempts[0], s.attempts[1:]
	}
	if now.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if now.err != nil {
		return nil, now.err
	}
	body := `{"gitVersion":"v1.36.3"}`
	if now.code != http.StatusOK {
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, now.code)
	}
	return &http.Response{StatusCode: now.code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// connection returns one to a server, which hasn't been asked.
func (s *lateServer) connection() *Connection {
	rc := &rest.Config{Host: "https://api.example.com:6443", Transport: s, QPS: -1}
	c := &Connection{Rest: rc, Client: testkit.Must(kubernetes.NewForConfig(rc))}
	c.unanswered.Store(&errNotAsked)
	return c
}

var errRefused = errors.New("connection refused")

// TestAwaitGoesOnUntilTheServerAnswers has the API server start late, in each way in which it may
// seem not to be there. The first attempt is told at once, with the address and what to do.
func TestAwaitGoesOnUntilTheServerAnswers(t *testing.T) {
	const remedy = "check that it is running and that the kubeconfig points to it"
	for name, c := range map[string]struct {
		attempts []attempt
		version  compat.Version
		warnings []string // part of each
		asked    int      // requests
	}{
		"at once":                 {nil, compat.V36, nil, 1},
		"nobody listens":          {[]attempt{{err: errRefused}, {err: errRefused}}, compat.V36, []string{"connection refused"}, 4},
		"no answer":               {[]attempt{{hang: true}}, compat.V36, []string{"did not answer within 10 seconds"}, 3},
		"credentials not yet":     {[]attempt{{code: http.StatusUnauthorized}}, compat.V36, []string{"not reachable"}, 3},
		"an error":                {[]attempt{{code: http.StatusInternalServerError}}, compat.V36, []string{"not reachable"}, 3},
		"roles not yet":           {[]attempt{{err: errRefused}, {code: http.StatusOK}, {code: http.StatusInternalServerError}}, compat.V36, []string{"connection refused"}, 4},
		"readiness not yet":       {[]attempt{{err: errRefused}, {code: http.StatusOK}, {code: http.StatusForbidden}}, compat.V36, []string{"connection refused"}, 4},
		"no such page":            {[]attempt{{err: errRefused}, {code: http.StatusOK}, {code: http.StatusNotFound}}, compat.V36, []string{"connection refused"}, 3},
		"the version is a secret": {[]attempt{{code: http.StatusForbidden}}, compat.Newest, []string{"set --emulated-version"}, 2},
		"no roles at first":       {[]attempt{{code: http.StatusForbidden}, {code: http.StatusForbidden}}, compat.V36, []string{"tell its version"}, 4},
		"everything is a secret":  {slices.Repeat([]attempt{{code: http.StatusForbidden}}, 1000), compat.Newest, []string{"tell its version", "tell its version", "tell its version", "set --emulated-version"}, 34},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, log := &lateServer{attempts: c.attempts}, bytes.Buffer{}
				s := server.connection()
				if s.Answered() == nil {
					t.Errorf("a server that wasn't asked has answered")
				}
				if err := s.Await(t.Context(), slog.New(slog.NewTextHandler(&log, nil))); err != nil || s.Answered() != nil || s.Version != c.version {
					t.Errorf("got %v, %v and version %v, want %v", err, s.Answered(), s.Version, c.version)
				}
				if n := strings.Count(log.String(), "level=WARN"); n != len(c.warnings) || len(server.asked) != c.asked {
					t.Errorf("%d warnings and requests %q, want %d and %d:\n%s", n, server.asked, len(c.warnings), c.asked, log.String())
				}
				for _, part := range c.warnings {
					got, secret := log.String(), strings.Contains(part, "--") || strings.Contains(part, "tell its version")
					if !strings.Contains(got, part) || !secret && (!strings.Contains(got, "https://api.example.com:6443") || !strings.Contains(got, remedy)) {
						t.Errorf("logged %s, want %q, the address and %q", got, part, remedy)
					}
				}
			})
		})
	}
}

// TestAwaitWarnsLessAndLess while nobody answers for an hour, and ends with its context.
func TestAwaitWarnsLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, log := &lateServer{}, bytes.Buffer{}
		for range 1000 {
			server.attempts = append(server.attempts, attempt{err: errRefused})
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		s := server.connection()
		if err := s.Await(ctx, slog.New(slog.NewTextHandler(&log, nil))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if err := s.Answered(); !errors.Is(err, errRefused) {
			t.Errorf("why there is no answer is %v, want %v", err, errRefused)
		}
		// At once, after 10, 20, 40, 80 and 160 seconds more, and then every five minutes.
		if warnings := strings.Count(log.String(), "level=WARN"); warnings < 15 || warnings > 18 {
			t.Errorf("%d warnings in an hour, want some 16:\n%s", warnings, log.String())
		}
		if n := len(server.asked); n < 700 || n > 730 {
			t.Errorf("%d attempts in an hour, want one in five seconds", n)
		}
	})
}

// TestOpenRefusesWhatNoWaitingHeals without asking anybody.
func TestOpenRefusesWhatNoWaitingHeals(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority: /does/not/exist}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"no such kubeconfig": "/does/not/exist", "no such certificates": broken} {
		if _, err := Open(Options{Kubeconfig: path, Config: config.Default()}); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
	}
}
