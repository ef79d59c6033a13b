package observe

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestStatusAnswers asks a Berth that stands by and one that leads where its cluster stands, with
// and without nodes, and with a number that is none.
func TestStatusAnswers(t *testing.T) {
	l := newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	ready := l.step(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.NodeSet{Node: testkit.Node("n2").Alloc("cpu", "4", "memory", "8Gi").Obj()},
		step.PodSet{Pod: testkit.Pod("big").Req("cpu", "64").Obj()})
	s.Step(l.now, 0, nil, &ready)
	if code, body := get(t.Context(), s, nil, "/debug/status"); code != http.StatusServiceUnavailable || !strings.Contains(body, "standing by") {
		t.Errorf("standing by: got %d %s", code, body)
	}
	s.BecomeLeader()
	for _, x := range []struct {
		query string
		nodes int
	}{{"", 0}, {"?nodes=0", 0}, {"?nodes=1", 1}, {"?nodes=5000", 2}} {
		code, body := get(t.Context(), s, l.core, "/debug/status"+x.query)
		got := Status{}
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
			t.Fatalf("%s: got %d %v\n%s", x.query, code, err, body)
		}
		if len(got.NodeLines) != x.nodes || got.Nodes.Nodes != 2 || len(got.Pending) != 1 || got.Pending[0].Pod != "default/big" || len(got.Decisions) != 1 || got.Decisions[0].Kind != step.Waits || got.Decisions[0].Rejected != nil {
			t.Errorf("%s: got\n%s\nwant one pod that waits, two nodes, of which %d in lines, and one decision without its rejections", x.query, body, x.nodes)
		}
	}
	for _, query := range []string{"-1", "5001", "many", ""} {
		if code, body := get(t.Context(), s, l.core, "/debug/status?nodes="+query); code != http.StatusBadRequest || !strings.Contains(body, "it must be a number from 0 to 5000") {
			t.Errorf("nodes=%s: got %d %s", query, code, body)
		}
	}
}

// TestStatusSaysWhatBecameOfThePriceFile without one, with a file that is used, and with one that broke.
func TestStatusSaysWhatBecameOfThePriceFile(t *testing.T) {
	l := newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	s.BecomeLeader()
	for _, x := range []struct {
		does func()
		want string
	}{
		{func() {}, "null"},
		{func() { s.PricesRead("EUR", "") }, `{"currency":"EUR"}`},
		{func() { s.PricesRead("EUR", "broken") }, `{"currency":"EUR","error":"broken"}`},
	} {
		x.does()
		_, body := get(t.Context(), s, l.core, "/debug/status")
		got := Status{}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if raw := testkit.Must(json.Marshal(got.NodePrices)); string(raw) != x.want {
			t.Errorf("got %s, want %s", raw, x.want)
		}
	}
}

// TestRunsJoinDecisionsOfOneKind has decisions that follow each other, of kinds, groups and
// numbers; the ring has room for eight.
func TestRunsJoinDecisionsOfOneKind(t *testing.T) {
	h := NewHistory(8)
	add := func(kind step.DecisionKind, group string, pods ...string) {
		for _, pod := range pods {
			h.Step(time.Time{}, 0, nil, &step.Ready{Decisions: []step.Decision{{Kind: kind, Group: group, Pod: pod}}})
		}
	}
	says := func(limit int, want string) {
		t.Helper()
		var got strings.Builder
		for _, r := range h.Runs(limit) {
			fmt.Fprintf(&got, "%s%s %s+%d ", r.Kind, r.Group, r.Pod, r.More)
		}
		if strings.TrimSpace(got.String()) != want {
			t.Errorf("%d runs at most are %q, want %q", limit, got.String(), want)
		}
	}
	says(3, "")
	add(step.Waits, "", "a", "b")
	add(step.ScaledUp, "g", "")
	add(step.ScaledUp, "h", "")
	add(step.Placed, "", "a", "b", "c")
	says(9, "Waits b+1 ScaledUpg +0 ScaledUph +0 Placed c+2")
	says(2, "ScaledUph +0 Placed c+2")
	add(step.Placed, "", "d", "e", "f")
	says(9, "ScaledUpg +0 ScaledUph +0 Placed f+5")
}

// TestNamesComplete asks for names that begin so.
func TestNamesComplete(t *testing.T) {
	l := newLive(t)
	s := NewServer(slog.New(slog.DiscardHandler))
	s.BecomeLeader()
	in := []step.Input{step.PodSet{Pod: testkit.Pod("web-1").Req("cpu", "64").Obj()}, step.PodSet{Pod: testkit.Pod("db").On("n1").Obj()}}
	for i := range maxNames + 1 {
		in = append(in, step.NodeSet{Node: testkit.Node(fmt.Sprintf("n%03d", i)).Alloc("cpu", "4").Obj()})
	}
	l.step(in...)
	for _, x := range []struct {
		query string
		names int
		first string
	}{
		{"pods&prefix=", 2, "default/db"}, {"pods&prefix=default/w", 1, "default/web-1"}, {"pods&prefix=x", 0, ""},
		{"nodes", maxNames, "n000"}, {"nodes&prefix=n01", 10, "n010"}, {"groups", 0, ""},
	} {
		code, body := get(t.Context(), s, l.core, "/debug/explain?names="+x.query)
		got := Names{}
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK || got.Names == nil || len(got.Names) != x.names || x.names > 0 && got.Names[0] != x.first {
			t.Errorf("names=%s: got %d %v, %d names: %.80s; want %d, the first %s", x.query, code, err, len(got.Names), body, x.names, x.first)
		}
	}
	if code, body := get(t.Context(), s, l.core, "/debug/explain?names=jobs"); code != http.StatusBadRequest || !strings.Contains(body, "it must be pods, podgroups, nodes or groups") {
		t.Errorf("names=jobs: got %d %s", code, body)
	}
}
