package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/testkit"
)

// This file specifies what berth status and top show, of answers that a Berth on a dev cluster has
// given (testdata/kubectl), and docs/kubectl-berth.md, which shows the same.

// berthThatAnswers returns the address of a server that answers as a Berth did: busy or idle.
func berthThatAnswers(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "kubectl", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == statusPath {
			_, _ = w.Write(body)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// kubectlBerth returns what kubectl berth prints with such a Berth.
func kubectlBerth(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := commandFor(append([]string{"/usr/local/bin/" + pluginName}, append(args, "--server", berthThatAnswers(t, name), "--insecure-skip-tls-verify")...))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestKubectlPageShowsWhatIsPrinted compares the blocks of docs/kubectl-berth.md that begin with
// "$ kubectl berth status" and "$ kubectl berth top" with what these print; -rewrite writes them.
func TestKubectlPageShowsWhatIsPrinted(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "kubectl-berth.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```\n"
	text := string(page)
	for _, command := range []string{"status", "top"} {
		out, err := kubectlBerth(t, "busy", command)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, found := strings.Cut(text, fence+"$ kubectl berth "+command+"\n")
		_, after, closed := strings.Cut("\n"+rest, "\n"+fence) // what was printed may be nothing yet
		if !found || !closed {
			t.Fatalf("%s has no block that begins with $ kubectl berth %s", path, command)
		}
		text = before + fence + "$ kubectl berth " + command + "\n" + strings.TrimRight(out, "\n") + "\n" + fence + after
	}
	testkit.Generated(t, path, text, "go test ./cmd/berth -run KubectlPage -rewrite", *rewrite)
}

// TestStatusOfAnIdleCluster has nothing to do.
func TestStatusOfAnIdleCluster(t *testing.T) {
	for _, command := range []string{"status", "top"} {
		out, err := kubectlBerth(t, "idle", command)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"0 pending", "No pending pods.", "No scale-up, node removal or preemption in progress."} {
			if !strings.Contains(out, want) {
				t.Errorf("%s prints\n%s\nwant …%s…", command, out, want)
			}
		}
	}
}

// TestBriefStatus is one line, in the words of the screen; -rewrite writes it.
func TestBriefStatus(t *testing.T) {
	for _, name := range []string{"busy", "idle"} {
		out, err := kubectlBerth(t, name, "status", "--brief")
		if err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %q, %v; want one line", name, out, err)
		}
		testkit.Generated(t, filepath.Join("testdata", "kubectl", name+".brief"), out, "go test ./cmd/berth -run BriefStatus -rewrite", *rewrite)
	}
}

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
	if got, want := brief(s), fmt.Sprintf(what, " ", ", ")+"; removing 2 nodes: the provider was asked to delete it"; got != want {
		t.Errorf("in one line it says\n%q\nwant\n%q", got, want)
	}
}

// TestOutputIsPlainWithoutATerminal has no escape sequence and no carriage return, also with top,
// which prints one screen and ends; as JSON the answer stays as it came.
func TestOutputIsPlainWithoutATerminal(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"top"}, {"top", "--once"}} {
		if out, err := kubectlBerth(t, "busy", args...); err != nil || strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("%v prints %v\n%q", args, err, out)
		}
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "kubectl", "busy.json"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := kubectlBerth(t, "busy", "status", "-o", "json"); err != nil || out != string(raw) {
		t.Errorf("-o json prints %v\n%s", err, out)
	}
}

// TestStatusRefuses gives flags that say nothing, and asks what isn't a Berth of this kind.
func TestStatusRefuses(t *testing.T) {
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"status", "-o", "yaml"}, "it must be text or json"},
		{[]string{"status", "--brief", "-o", "json"}, "--brief is a text"},
		{[]string{"top", "--interval", "1ms"}, "--interval is 1ms; it must be at least 500ms"},
		{[]string{"status", "more"}, "unknown command"},
		{[]string{"explain", "nodes"}, "does not serve /debug/explain: it is an older version of Berth"},
		{[]string{"run"}, "unknown command"},
	} {
		if out, err := kubectlBerth(t, "busy", x.args...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v\n%s\nwant …%s…", x.args, err, out, x.want)
		}
	}
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
	f := &topFlags{interval: 2 * time.Second}
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
