package term

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file specifies what is drawn of a status. What berth status and top print of the answers of a
// Berth is specified beside the commands.

// TestStatusSaysWhichGroupsCoolDown has nodes that could go, and a removal that failed.
func TestStatusSaysWhichGroupsCoolDown(t *testing.T) {
	s := &Status{}
	s.CoolingDown = []v1alpha1.CoolingDown{{Group: "small-cpu", Nodes: 23, Until: time.Date(2026, 11, 23, 19, 50, 13, 0, time.UTC),
		Why: "node group small-cpu failed to shrink at 19:47:13 (--scale-down-delay-after-failure=3m0s)"}}
	s.Draining = []v1alpha1.Draining{{Node: "a", Leaving: v1alpha1.Leaving{Step: "deleting"}}, {Node: "b", Leaving: v1alpha1.Leaving{Step: "deleting"}}}
	const what = "cooldown%ssmall-cpu: 23 nodes removable; node group small-cpu failed to shrink at 19:47:13 (--scale-down-delay-after-failure=3m0s)%suntil 19:50:13"
	if got, want := nowLines(s, maxNowLines)[1].text(palette{}, 0), "  "+fmt.Sprintf(what, "  ", "  "); got != want {
		t.Errorf("the screen says\n%q\nwant\n%q", got, want)
	}
	if got, want := Brief(s), fmt.Sprintf(what, " ", ", ")+"; removing 2 nodes: the provider was asked to delete it"; got != want {
		t.Errorf("in one line it says\n%q\nwant\n%q", got, want)
	}
}

// TestStatusSaysWhichResizesArePending has pods that their nodes can't resize in place.
func TestStatusSaysWhichResizesArePending(t *testing.T) {
	s, since := &Status{}, time.Date(2026, 11, 23, 19, 50, 13, 0, time.UTC)
	if l := resizeLine(s); l != nil {
		t.Errorf("without resizes the screen says %q", l.text(palette{}, 0))
	}
	s.Resizes = &v1alpha1.PendingResizes{Deferred: 2, Infeasible: 1, Moving: 1, Pods: []v1alpha1.PendingResize{
		{Pod: "default/web", Node: "n1", Reason: "deferred", Since: since, Lack: "node n1 lacks 2 cpu", Moves: true, Why: "it is to move: a node is coming"},
		{Pod: "default/large", Node: "n2", Reason: "infeasible", Since: since, Lack: "node n2 is too small"}}}
	if got, want := resizeLine(s).text(palette{}, 0), "resize 2 deferred, 1 infeasible; 1 pod being moved"; got != want {
		t.Errorf("the screen's head says %q, want %q", got, want)
	}
	s.Resizes.Deferred, s.Resizes.Moving = 0, 0
	if got, want := resizeLine(s).text(palette{}, 0), "resize 1 infeasible"; got != want {
		t.Errorf("the screen's head says %q, want %q", got, want)
	}
	const want = "moving default/web: node n1 lacks 2 cpu; it is to move: a node is coming, since 19:50:13; resize infeasible default/large: node n2 is too small, since 19:50:13"
	if got := Brief(s); got != want {
		t.Errorf("in one line it says\n%q\nwant\n%q", got, want)
	}
}

// TestStatusSaysWhatIsWrongWithPrices has a price file that broke, and groups without a price.
func TestStatusSaysWhatIsWrongWithPrices(t *testing.T) {
	s := &Status{}
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
	s.Meta.Currency = "USD"
	says()
	s.Meta.Currency = "EUR"
	s.Attention = []v1alpha1.Attention{{Kind: "PriceFile", Message: "the price file is not used as it is now, and the prices of before hold: node prices in p.yaml:\nrules: Required value"}, {Kind: "Unpriced"}}
	s.Unpriced = &v1alpha1.Unpriced{NeededBy: []string{"--expander=cost", "--consolidation"}, Groups: []string{"a", "b", "c", "d", "e", "f"}, Without: 7, Of: 9}
	says("$ stands for EUR, the currency of --node-prices.",
		"the price file is not used as it is now, and the prices of before hold: node prices in p.yaml: rules: Required value",
		"No price for 7 of 9 node groups, needed by --expander=cost and --consolidation: a, b, c, d, e and 2 more (docs/prices.md)")
	s.Meta, s.Attention, s.Unpriced = v1alpha1.Meta{}, nil, &v1alpha1.Unpriced{NeededBy: []string{"--expander=cost"}, Groups: []string{"a"}, Without: 1, Of: 1}
	says("No price for 1 of 1 node group, needed by --expander=cost: a (docs/prices.md)")
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

// TestFlagsAndCommandsAreSuggested when they are near, and none when nothing is.
func TestFlagsAndCommandsAreSuggested(t *testing.T) {
	names := []string{"status", "top", "explain", "ui"}
	for name, want := range map[string]string{"staus": "status", "exlpain": "explain", "foo": ""} {
		if got := likeliest(name, names); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
}

// answers is a Source of answers by path.
type answers map[string]string

// Get implements Source.
func (a answers) Get(_ context.Context, path string) ([]byte, error) {
	return []byte(a[strings.TrimPrefix(path, api.Prefix)]), nil
}

// TestWhatIsSaidOfRoomAndLevels of a pod group: for whom room is kept and until when, or why none is, and which
// topologies count.
func TestWhatIsSaidOfRoomAndLevels(t *testing.T) {
	const levels = `"known": true, "policy": "Gang", "minCount": 2, "topology": "rack", "required": ["zone"], "preferred": ["row"]`
	for body, want := range map[string][]string{
		`{"namespace": "a", "name": "b", ` + levels + `}`: {"all members on nodes with one value of zone and of rack; preferably on nodes with one value of row\n"},
		`{"namespace": "a", "name": "b", "room": {"members": 2, "nodes": ["n0", "n1"], "allNodes": 3, "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:05:00Z", "ends": "2026-01-01T01:00:00Z"}}`: {
			"room is kept for 2 members on 3 nodes (n0, n1 and 1 more) since 2026-01-01 00:00:00, until 2026-01-01 01:00:00 at the latest; pods that end before 2026-01-01 00:05:00 may use it\n"},
		`{"namespace": "a", "name": "b", "roomMissing": "why"}`: {"no room is kept: why\n"},
	} {
		var out bytes.Buffer
		if err := explainPodGroup(t.Context(), &out, answers{"podgroups/a/b": body}, "podgroups/a/b"); err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(out.String(), line) {
				t.Errorf("of %s it says\n%s\nwant …%s…", body, out.String(), line)
			}
		}
	}
}
