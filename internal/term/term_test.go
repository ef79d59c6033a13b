package term

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/edge/observe"
)

// This file specifies what is drawn of a status. What berth status and top print of the answers of a
// Berth is specified beside the commands.

// TestStatusSaysWhichGroupsCoolDown has nodes that could go, and a removal that failed.
func TestStatusSaysWhichGroupsCoolDown(t *testing.T) {
	s := &observe.Status{}
	s.CoolingDown = []explain.CoolingDown{{Group: "small-cpu", Nodes: 23, Until: time.Date(2026, 11, 23, 19, 50, 13, 0, time.UTC),
		Why: "node group small-cpu failed to shrink at 19:47:13 (--scale-down-delay-after-failure=3m0s)"}}
	s.Leaving = []explain.LeavingNode{{Node: "a", Leaving: explain.Leaving{Step: "deleting"}}, {Node: "b", Leaving: explain.Leaving{Step: "deleting"}}}
	const what = "cooldown%ssmall-cpu: 23 nodes removable; node group small-cpu failed to shrink at 19:47:13 (--scale-down-delay-after-failure=3m0s)%suntil 19:50:13"
	if got, want := nowLines(s, maxNowLines)[1].text(palette{}, 0), "  "+fmt.Sprintf(what, "  ", "  "); got != want {
		t.Errorf("the screen says\n%q\nwant\n%q", got, want)
	}
	if got, want := Brief(s), fmt.Sprintf(what, " ", ", ")+"; removing 2 nodes: the provider was asked to delete it"; got != want {
		t.Errorf("in one line it says\n%q\nwant\n%q", got, want)
	}
}

// TestStatusSaysWhatIsWrongWithPrices has a price file that broke, and groups without a price.
func TestStatusSaysWhatIsWrongWithPrices(t *testing.T) {
	s := &observe.Status{}
	says := func(want ...string) {
		t.Helper()
		var got []string
		for _, l := range priceLines(s) {
			got = append(got, l.text(palette{}, 0))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the screen says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	says()
	s.NodePrices = &observe.NodePrices{Currency: "USD"}
	says()
	s.NodePrices = &observe.NodePrices{Currency: "EUR", Error: "node prices in p.yaml:\nrules: Required value"}
	s.Unpriced = &explain.Unpriced{NeededBy: []string{"--expander=cost", "--consolidation"}, Groups: []string{"a", "b", "c", "d", "e", "f"}, Without: 7, Of: 9}
	says("$ stands for EUR, the currency of --node-prices.",
		"The file of --node-prices can't be used, and the old prices hold: node prices in p.yaml: rules: Required value",
		"No price for 7 of 9 node groups, needed by --expander=cost and --consolidation: a, b, c, d, e and 2 more (docs/prices.md)")
	s.NodePrices, s.Unpriced = nil, &explain.Unpriced{NeededBy: []string{"--expander=cost"}, Groups: []string{"a"}, Without: 1, Of: 1}
	says("No price for 1 of 1 node group, needed by --expander=cost: a (docs/prices.md)")
}

// TestTopFitsOnAnyScreen draws a large cluster on screens of many sizes: no screen is longer or
// wider than the terminal, in colour or without, and the last line says how to leave.
func TestTopFitsOnAnyScreen(t *testing.T) {
	s := &observe.Status{Version: "v1", At: time.Unix(1_800_000_000, 0)}
	for i := range 300 {
		s.NodeLines = append(s.NodeLines, explain.NodeLine{Node: fmt.Sprintf("worker-%03d.with.a.very.long.name.in.some.region.example.com", i), Group: "a-group", Ready: i > 3, Price: 0.4,
			State: explain.NodeStays, Pods: 12, CPU: explain.Use{Requested: int64(i * 10), Allocatable: 1000}, Memory: explain.Use{Requested: 1, Allocatable: 0}})
		s.Pending = append(s.Pending, explain.PendingPods{State: explain.PendingRejected, Reason: strings.Repeat("a reason that goes on ", 9), Pods: 3, Pod: "ns/pod"})
		s.Preempting = append(s.Preempting, explain.Preempting{Pod: "ns/p", Node: "n", Victims: []string{"a/b"}})
	}
	s.Nodes.Nodes, s.Nodes.Ready = 300, 296
	f := &Top{Interval: 2 * time.Second}
	for height := 1; height < 60; height++ {
		for _, x := range []frame{{status: s}, {status: s, err: fmt.Errorf("the port-forward: lost")}} {
			lines := f.lines(x, height)
			if len(lines) != height || !strings.Contains(lines[len(lines)-1].text(palette{}, 0), "q quits") {
				t.Errorf("on %d lines it draws %d, of which the last is %q", height, len(lines), lines[len(lines)-1].text(palette{}, 0))
			}
			for _, l := range lines {
				for _, width := range []int{1, 20, 80, 200} {
					if got := l.text(palette{}, width); utf8.RuneCountInString(got) > width {
						t.Errorf("on %d columns a line has %d: %q", width, utf8.RuneCountInString(got), got)
					}
					coloured := l.text(palette{true}, width)
					for _, c := range []colour{strong, faint, bad, good, busy} {
						coloured = strings.ReplaceAll(coloured, fmt.Sprintf("\x1b[%dm", c), "")
					}
					if coloured = strings.TrimRight(strings.ReplaceAll(coloured, "\x1b[0m", ""), " "); coloured != l.text(palette{}, width) {
						t.Errorf("in colour a line is %q, without %q", coloured, l.text(palette{}, width))
					}
				}
			}
		}
	}
}

// TestColoursOnlyOnATerminal asks for the palette of what is no terminal, and of a terminal that
// mustn't have colours.
func TestColoursOnlyOnATerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if paletteFor(f).colours || paletteFor(&bytes.Buffer{}).colours {
		t.Error("a file or a buffer has colours")
	}
	for _, x := range []struct {
		noColor, term string
		want          bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		t.Setenv("NO_COLOR", x.noColor)
		t.Setenv("TERM", x.term)
		if got := coloursAllowed(); got != x.want {
			t.Errorf("NO_COLOR=%q TERM=%q: colours %v, want %v", x.noColor, x.term, got, x.want)
		}
	}
}

// TestAgo says for how long something has been.
func TestAgo(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for d, want := range map[time.Duration]string{0: "0s", -time.Second: "0s", 61 * time.Second: "1m1s", 3*time.Hour + 5*time.Minute: "3h5m", 50 * time.Hour: "2d2h"} {
		if got := ago(now, now.Add(-d)); got != want {
			t.Errorf("%s is said as %q, want %q", d, got, want)
		}
	}
	if got := ago(now, time.Time{}); got != "-" {
		t.Errorf("no time is said as %q", got)
	}
}
