package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies what berth status and top show, of answers that a Berth on a dev cluster has
// given (testdata/kubectl), and docs/kubectl-berth.md, which shows the same.

// berthThatAnswers returns the address of a server that answers as a Berth did: busy or idle.
func berthThatAnswers(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "kubectl", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &answers); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[strings.TrimPrefix(r.URL.Path, api.Prefix)]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(body)
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
// which prints one screen and ends; and the other formats are kubectl's.
func TestOutputIsPlainWithoutATerminal(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"top"}, {"top", "--once"}} {
		if out, err := kubectlBerth(t, "busy", args...); err != nil || strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("%v prints %v\n%q", args, err, out)
		}
	}
	for _, x := range []struct{ format, want string }{
		{"json", `"kind": "Overview"`}, {"yaml", "kind: Overview\n"}, {"jsonpath={.pods.pending}", "7"}, {"wide", "small-3991b-0002  small  █████"},
	} {
		if out, err := kubectlBerth(t, "busy", "status", "-o", x.format); err != nil || !strings.Contains(out, x.want) {
			t.Errorf("-o %s prints %v\n%s\nwant …%s…", x.format, err, out, x.want)
		}
	}
}

// TestStatusRefuses gives flags that say nothing, and asks what isn't a Berth of this kind.
func TestStatusRefuses(t *testing.T) {
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"status", "-o", "name"}, `--output is "name"; it must be text, wide, json, yaml,`},
		{[]string{"status", "--brief", "-o", "json"}, "--brief is a text"},
		{[]string{"top", "--interval", "1ms"}, "--interval is 1ms; it must be at least 500ms"},
		{[]string{"status", "more"}, `"more" is one argument too many`},
		{[]string{"explain", "nodes"}, "does not serve /api/v1alpha1/money: it is an older version of Berth"},
		{[]string{"staus"}, `unknown command "staus" for "kubectl berth"; did you mean status?; see kubectl berth --help`},
		{[]string{"status", "--bref"}, "unknown flag: --bref; did you mean --brief?; see kubectl berth status --help"},
		{[]string{"run"}, "unknown command"},
	} {
		if out, err := kubectlBerth(t, "busy", x.args...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v\n%s\nwant …%s…", x.args, err, out, x.want)
		}
	}
}

// TestExitCodes tells errors of arguments from all others.
func TestExitCodes(t *testing.T) {
	for _, x := range []struct {
		args []string
		code int
	}{
		{[]string{"staus"}, 2}, {[]string{"status", "--bref"}, 2}, {[]string{"status", "more"}, 2}, {[]string{"status", "-o", "nothing"}, 2}, {[]string{"explain"}, 2}, {[]string{"simulate"}, 2}, {[]string{"plan"}, 2},
		{[]string{"status", "--file", "testdata/none"}, 2}, {[]string{"simulate", "testdata/none"}, 2},
		{[]string{"explain", "node", "none", "--file", "../../examples/explain/staying.yaml"}, 1}, {[]string{"status", "--server", "https://127.0.0.1:1", "--insecure-skip-tls-verify"}, 1}, {[]string{"simulate", filepath.Join("testdata", "unmet.yaml")}, 3},
	} {
		cmd := root()
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(x.args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || term.ExitCode(err) != x.code {
			t.Errorf("berth %v: %v, want the exit code %d", x.args, err, x.code)
		}
	}
}

// TestVersionIsEverywhere: each command has --version.
func TestVersionIsEverywhere(t *testing.T) {
	for _, path := range []string{"", "status", "explain", "simulate", "shadow report", "provider check", "dump"} {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetArgs(append(strings.Fields(path), "--version"))
		if err := cmd.Execute(); err != nil || out.String() != versionText() {
			t.Errorf("berth %s --version prints %v\n%s", path, err, out.String())
		}
	}
}

// TestOneGrammarForFiles: what is asked of a running Berth can be asked of a file.
func TestOneGrammarForFiles(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "explain", "staying.yaml")
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"status"}, "scenario staying.yaml"}, {[]string{"explain", "nodes"}, "scale-down: "}, {[]string{"top"}, "NODE"}, {[]string{"explain", "groups", "-o", "name"}, "group/"},
	} {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(append(x.args, "--file", file))
		if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), x.want) {
			t.Errorf("berth %v --file %s: %v\n%s\nwant …%s…", x.args, file, err, out.String(), x.want)
		}
	}
}
