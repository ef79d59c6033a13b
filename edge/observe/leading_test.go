package observe

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestWhoLeadsIsAMetric: an instance counts as leading from when it decides until it stops, but not while its Lease doesn't
// let it write.
func TestWhoLeadsIsAMetric(t *testing.T) {
	s := NewServer(slog.New(slog.DiscardHandler))
	mayWrite := true
	s.MayWrite = func() bool { return mayWrite }
	wants := func(when, value string) {
		t.Helper()
		want := `
			# HELP berth_leading 1 for an instance that decides: it holds the Lease and has renewed it in time, or runs without leader election. 0 for one that stands by, or that can't renew its Lease.
			# TYPE berth_leading gauge
			berth_leading ` + value + "\n"
		if err := testutil.GatherAndCompare(s.Metrics.Registry, strings.NewReader(want), "berth_leading"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	wants("standing by", "0")
	s.BecomeLeader()
	wants("as the leader", "1")
	mayWrite = false
	wants("while the Lease can't be renewed", "0")
	mayWrite = true
	wants("when it was renewed", "1")
	s.StopLeading()
	wants("at the end", "0")

	alone := NewServer(slog.New(slog.DiscardHandler))
	alone.BecomeLeader() // without leader election nothing says whether it may write
	if !alone.leads() {
		t.Error("an instance without leader election doesn't count as leading")
	}
}
