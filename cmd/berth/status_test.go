package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/test/testkit"
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
		if r.URL.Path == observe.StatusPath {
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
