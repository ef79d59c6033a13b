package main

import (
	"bytes"
	"encoding/json"
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

// This file specifies how berth explain asks a running Berth, and how it prints the answers.

// answers has what a running Berth answers, by path below the API's prefix.
func answers(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "explain", "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// ask returns the output of berth explain.
func ask(t *testing.T, args ...string) (string, error) {
	t.Helper()
	known := answers(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := known[strings.TrimPrefix(r.URL.Path, api.Prefix)]; ok {
			_, _ = w.Write(body)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"node group smal not found; similar names are small"}`))
	}))
	defer server.Close()
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(append([]string{"explain"}, args...), "--server", server.URL, "--insecure-skip-tls-verify"))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestExplainPrints compares what is printed with testdata/explain/NAME.txt; -rewrite writes
// these files.
func TestExplainPrints(t *testing.T) {
	for name, args := range map[string][]string{
		"pod":              {"pod", "default/p"},
		"pod_not_planned":  {"pod", "default/new"},
		"pod_unknown_time": {"pod", "default/old"},
		"pod_no_node":      {"pod", "default/bad"},
		"podgroup":         {"podgroup", "default/train"},
		"podgroup_fits":    {"podgroup", "default/serve"},
		"group":            {"group", "small"},
		"group_with_room":  {"group", "large"},
		"groups":           {"group"},
		"node_stays":       {"node", "worker-1"},
		"node_could_go":    {"node", "worker-2"},
		"node_unknown":     {"node", "worker-3"},
		"node_draining":    {"node", "worker-4"},
		"node_in_doubt":    {"node", "worker-5"},
		"nodes":            {"nodes"},
	} {
		got, err := ask(t, args...)
		if err != nil {
			t.Errorf("berth explain %v: %v", args, err)
		}
		path := filepath.Join("testdata", "explain", name+".txt")
		testkit.Generated(t, path, got, "go test ./cmd/berth -rewrite", *rewrite)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if got, err := ask(t, "pod", "new"); err != nil || !strings.Contains(got, "pod default/new is pending") {
		t.Errorf("a pod without a namespace, where there is no kubeconfig: %v\n%s", err, got)
	}
	if got, err := ask(t, "pod", "new", "--namespace", "default"); err != nil || !strings.Contains(got, "pod default/new is pending") {
		t.Errorf("a pod without its namespace: %v\n%s", err, got)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"group", "-o", "json"}, `"kind": "GroupList"`},
		{[]string{"group", "small", "-o", "yaml"}, "apiVersion: berth.dev/v1alpha1\n"},
		{[]string{"group", "-o", "name"}, "group/large\ngroup/small\n"},
		{[]string{"node", "worker-1", "-o", "name"}, "node/worker-1\n"},
		{[]string{"pod", "default/p", "-o", "jsonpath={.scaling.coming.group}"}, "small"},
		{[]string{"group", "small", "-o", "go-template={{.backoff.class}}"}, "OutOfResources"},
		{[]string{"group", "small", "-o", "go-template", "--template", "{{.max}}"}, "5"},
	} {
		if got, err := ask(t, x.args...); err != nil || !strings.Contains(got, x.want) {
			t.Errorf("berth explain %v prints %v\n%s\nwant …%s…", x.args, err, got, x.want)
		}
	}
}

// TestExplainTakesNamesOfKindsAsKubectlDoes: plurals, short names and KIND/NAME ask the same as
// the kind and the name.
func TestExplainTakesNamesOfKindsAsKubectlDoes(t *testing.T) {
	for _, x := range []struct{ args, same []string }{
		{[]string{"podgroups", "default/train"}, []string{"podgroup", "default/train"}},
		{[]string{"podgroup/default/train"}, []string{"podgroup", "default/train"}},
		{[]string{"groups"}, []string{"group"}},
		{[]string{"groups", "small"}, []string{"group", "small"}},
		{[]string{"group/small"}, []string{"group", "small"}},
		{[]string{"pods", "default/p"}, []string{"pod", "default/p"}},
		{[]string{"po", "default/p"}, []string{"pod", "default/p"}},
		{[]string{"pod/default/p"}, []string{"pod", "default/p"}},
		{[]string{"ng", "small"}, []string{"group", "small"}},
		{[]string{"pg", "default/train"}, []string{"podgroup", "default/train"}},
		{[]string{"no", "worker-1"}, []string{"node", "worker-1"}},
		{[]string{"node/worker-1"}, []string{"node", "worker-1"}},
	} {
		want, err := ask(t, x.same...)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ask(t, x.args...); err != nil || got != want {
			t.Errorf("berth explain %v: %v\n%s\nwant what berth explain %v prints:\n%s", x.args, err, got, x.same, want)
		}
	}
}

// TestExplainRefuses gives arguments that say nothing, and a name that isn't there.
func TestExplainRefuses(t *testing.T) {
	for _, x := range []struct {
		args []string
		want string
	}{
		{nil, "berth explain pod NAMESPACE/NAME, a pod group: berth explain podgroup NAMESPACE/NAME, a node group: berth explain group NAME, or a node: berth explain node NAME"},
		{[]string{"pod", "a/b/c"}, "name one pod: berth explain pod NAMESPACE/NAME"},
		{[]string{"pod", ""}, "berth explain pod NAMESPACE/NAME"},
		{[]string{"podgroup"}, "name one pod group: berth explain podgroup NAMESPACE/NAME, or show all: berth explain podgroups"},
		{[]string{"podgroup", "a/b/c"}, "name one pod group"},
		{[]string{"group", "a", "b"}, "name one node group"},
		{[]string{"group", ""}, "name one node group"},
		{[]string{"node"}, "name one node"},
		{[]string{"node", ""}, "name one node"},
		{[]string{"node", "a", "b"}, "name one node"},
		{[]string{"pod/"}, "berth explain pod NAMESPACE/NAME"},
		{[]string{"default/p"}, "berth explain pod NAMESPACE/NAME"},
		{[]string{"group", "smal"}, "node group smal not found; similar names are small"},
		{[]string{"group", "small", "-o", "table"}, `--output is "table"; it must be text, wide, name, json, yaml,`},
		{[]string{"group", "small", "-o", "jsonpath={"}, `--output is "jsonpath={"`},
	} {
		if got, err := ask(t, x.args...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("berth explain %v: %v\n%s\nwant …%s…", x.args, err, got, x.want)
		}
	}
}

// TestBadAnswers: whatever is wrong with who answers, the user is told what and what to do, on one line, and the exit
// code is that of an error which isn't the command line's.
func TestBadAnswers(t *testing.T) {
	for _, x := range []struct {
		name  string
		serve func(w http.ResponseWriter)
		says  string
	}{
		{"credentials that have expired", func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
			"not authenticated (401); give a kubeconfig with --kubeconfig, or a token with --token-file"},
		{"no rights", func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
			"not authorized to get /api/v1alpha1/pods/default/p (403); ask for the ClusterRole berth-viewer"},
		{"an instance that stands by", func(w http.ResponseWriter) {
			w.Header().Set(api.StandbyHeader, "true")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":"this instance is standing by; query the leader, berth-1"}`))
		}, "this instance is standing by; query the leader, berth-1"},
		{"a core that is busy", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":"the core is busy, or other queries are being answered; try again"}`))
		}, "the core is busy, or other queries are being answered; try again"},
		{"a pod that isn't there", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":"pod default/p not found"}`))
		}, "pod default/p not found"},
		{"another server", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<html>"))
		}, "does not serve /api/v1alpha1/pods/default/p: it is an older version of Berth, or another server"},
		{"another server, which knows the path", func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, "reading the response of Berth: "},
		{"a server that moves", func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://elsewhere.example.com/")
			w.WriteHeader(http.StatusFound)
		}, "answered with status 302 Found"},
		{"an endless answer", func(w http.ResponseWriter) {
			for range 17 {
				_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
		}, "answered with more than 16777216 bytes, which no Berth does: check --server"},
	} {
		t.Run(x.name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { x.serve(w) }))
			defer server.Close()
			var out bytes.Buffer
			cmd := root()
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs([]string{"explain", "pod", "default/p", "--server", server.URL, "--insecure-skip-tls-verify"})
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "\n") || term.ExitCode(err) != term.ExitError || out.Len() > 0 {
				t.Errorf("it says %v (exit code %d) and prints %q; want …%s…", err, term.ExitCode(err), out.String(), x.says)
			}
		})
	}
}

// TestNamesAreEscaped: a name is one part of a path, whatever letters it has.
func TestNamesAreEscaped(t *testing.T) {
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.EscapedPath()+"?"+r.URL.RawQuery)
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"not found"}`))
	}))
	defer server.Close()
	for _, name := range []string{"a?sort=b#c", "a b", "%2e%2e"} {
		cmd := root()
		cmd.SetArgs([]string{"explain", "node", name, "--server", server.URL, "--insecure-skip-tls-verify"})
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != "not found" {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got, want := strings.Join(asked, " "), "/api/v1alpha1/nodes/a%3Fsort=b%23c? /api/v1alpha1/nodes/a%20b? /api/v1alpha1/nodes/%252e%252e?"; got != want {
		t.Errorf("the server was asked for\n%s\nwant\n%s", got, want)
	}
}

// TestANodeOfABerthThatOnlySchedules: of its removal nothing is known, which is said, with what was decided about the node
// all the same; without a decision it is an error.
func TestANodeOfABerthThatOnlySchedules(t *testing.T) {
	answer := `{"name": "n", "decisions": [{"seq": 7, "time": "2026-01-01T00:00:00Z", "kind": "RoomTakenTwice", "node": "n", "text": "RoomTakenTwice pod a/b node n: scheduler other has placed it there"}]}`
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
	defer server.Close()
	ask := func() (string, error) {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs([]string{"explain", "node", "n", "--server", server.URL, "--insecure-skip-tls-verify"})
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	const want = "node n: Berth only schedules here and does not remove nodes\n\nDecisions:\n  2026-01-01 00:00:00.000  #7 RoomTakenTwice pod a/b node n: scheduler other has placed it there\n"
	if got, err := ask(); err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	answer = `{"name": "n", "decisions": []}`
	if got, err := ask(); err == nil || !strings.Contains(err.Error(), "Berth only schedules here") {
		t.Errorf("without decisions: %v, and it prints %q", err, got)
	}
}
