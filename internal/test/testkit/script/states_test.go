package script_test

import (
	"testing"
	"time"

	"github.com/berthproject/berth/internal/test/testkit/script"
)

// TestStatesPrintsWhatChanged describes two nodes and a home from command to command.
func TestStatesPrintsWhatChanged(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	const n1, n2, home = "node n1: tainted", "node n2: tainted", "the home of pod p is kept"
	var s script.States
	for i, c := range []struct {
		lines     []string
		now, wake time.Time
		all       bool
		want      string
	}{
		{lines: nil, now: at(0), want: ""},
		{lines: []string{n1, n2}, now: at(0), wake: at(5), want: "now node n1: tainted\nnow node n2: tainted\nwake in 5s\n"},
		{lines: []string{n1, n2}, now: at(3), wake: at(5), want: ""},
		{lines: []string{n1, n2}, now: at(3), wake: at(5), all: true, want: "now node n1: tainted\nnow node n2: tainted\nwake in 2s\n"},
		{lines: []string{n1, "node n2: draining", home}, now: at(3), wake: at(6), want: "now node n2: draining\nnow the home of pod p is kept\nwake in 3s\n"},
		{lines: []string{"node n2: draining", home}, now: at(4), want: "over: node n1\nno wake\n"},
		{lines: []string{"node n2: draining", home, "the home of pod p was asked for"}, now: at(4), want: "now the home of pod p is kept\nnow the home of pod p was asked for\n"},
		{lines: []string{"node n2: draining", home}, now: at(4), want: "now the home of pod p is kept\n"},
		{lines: []string{n1}, now: at(4), all: true, want: "now node n1: tainted\nover: node n2\nover: the home of pod p\n"},
		{lines: nil, now: at(4), want: "over: node n1\n"},
	} {
		if c.all {
			s.ShowAll()
		}
		if got := s.Text(c.lines, c.now, c.wake); got != c.want {
			t.Errorf("command %d: printed %q, want %q", i, got, c.want)
		}
	}
}
