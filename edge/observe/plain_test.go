package observe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestPlainServerHasMetricsAndHealthOnly serves without TLS, and some metrics not at all.
func TestPlainServerHasMetricsAndHealthOnly(t *testing.T) {
	var log bytes.Buffer
	s := NewServer(slog.New(slog.NewTextHandler(&log, nil)))
	o := NewServing()
	o.secure.BindPort = 0
	o.Plain, o.Disabled = "127.0.0.1:0", []string{"scheduler_preemption_victims", "no_such_metric"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if _, err := s.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(log.String())
	if address == nil {
		t.Fatalf("the log doesn't say where it serves: %s", log.String())
	}
	get := func(path string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address[1]+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	code, body := get("/metrics")
	if code != http.StatusOK || !strings.Contains(body, "\nscheduler_preemption_attempts_total ") || strings.Contains(body, "scheduler_preemption_victims") {
		t.Errorf("/metrics answers %d, and must have scheduler_preemption_attempts_total and not scheduler_preemption_victims:\n%s", code, body)
	}
	for path, want := range map[string]int{"/health-check": http.StatusOK, "/debug/explain": http.StatusNotFound, "/configz": http.StatusNotFound, "/debug/pprof/": http.StatusNotFound} {
		if code, body := get(path); code != want {
			t.Errorf("%s answers %d, want %d: %s", path, code, want, body)
		}
	}
	other := NewServing()
	other.secure.BindPort, other.Plain = 0, address[1]
	if _, err := s.Run(ctx, other); err == nil || !strings.Contains(err.Error(), "--address: serving on "+address[1]) {
		t.Errorf("a second server at the address: got %v, want an error that names the flag", err)
	}
}
