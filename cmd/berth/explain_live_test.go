package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies how berth explain asks a running Berth, and how it prints the answers.

// answers are what a running Berth answers to queries.
var answers = map[string]string{
	"pod=default%2Fp": `{"at":"2026-01-01T00:10:00Z","pod":"default/p","outcome":"Waits","message":"0/1 nodes are available: 1 Insufficient cpu.","queue":"unschedulable","attempts":1,
		"scaling":{"nextPlan":"2026-01-01T00:10:05Z","event":"pod triggered scale-up: [{small 1->3 (max: 5)}]",
			"ordered":{"group":"small","at":"2026-01-01T00:09:00Z","from":1,"to":3,"wanted":4,"pods":7,"choice":{"plan":5,"by":"least-waste"}},
			"coming":{"group":"small","kept":true,"ordered":"2026-01-01T00:09:00Z","likely":"2026-01-01T00:10:40Z","late":"2026-01-01T00:12:00Z","launches":20,"givenUp":"2026-01-01T00:24:00Z"},
			"groups":[{"group":"full","answer":"Limited","reasons":["max node group size reached","Insufficient cpu"],"missing":[{"resource":"cpu","needed":6000,"available":3500}]},
				{"group":"gpu","answer":"Rejects","reasons":["node(s) had untolerated taint(s)"],"plugin":"TaintToleration"},
				{"group":"small","answer":"Bought","detail":"small 1->3"}]},
		"decisions":[{"seq":9,"time":"2026-01-01T00:08:00Z","kind":"Waits","pod":"default/p","reason":"0/1 nodes"}]}`,
	"pod=default%2Fnew": `{"at":"2026-01-01T00:10:00Z","pod":"default/new","outcome":"Waits","scaling":{"notPlanned":"no attempt to schedule it has been made yet","coming":{"group":"small","node":"s1","ordered":"2026-01-01T00:09:00Z","givenUp":"2026-01-01T00:24:00Z"}}}`,
	"pod=default%2Fold": `{"at":"2026-01-01T00:10:00Z","pod":"default/old","outcome":"Waits","scaling":{"coming":{"group":"small"}}}`,
	"pod=default%2Fbad": `{"at":"2026-01-01T00:10:00Z","pod":"default/bad","outcome":"Waits","scaling":{"groups":[{"group":"small","answer":"WouldTake"}]}}`,
	"podgroup=default%2Ftrain": `{"at":"2026-01-01T00:10:00Z","podGroup":"default/train","outcome":"Waits","message":"minCount (8) cannot be satisfied: 4 scheduled, 3 remaining","placed":2,"permitting":2,"until":"2026-01-01T00:14:00Z","waiting":8,"gated":1,
		"spec":{"gang":true,"minCount":8,"topology":"rack","priority":7,"wholeDisruption":true},"condition":{"status":"False","reason":"Unschedulable","message":"none","since":"2026-01-01T00:08:00Z"},
		"nodes":[{"node":"n1","members":2}],"allNodes":3,"domains":["r1"],"queue":"unschedulable","attempts":3,"why":[{"members":8,"pod":"default/train-2","message":"0/4 nodes are available"}],
		"reasons":[{"plugin":"NodeResourcesFit","message":"Insufficient cpu","nodes":4,"short":{"resource":"cpu","needed":6000,"available":3500,"node":"n4"}}],
		"decisions":[{"seq":9,"time":"2026-01-01T00:08:00Z","kind":"GroupWaits","podGroup":"default/train","members":10,"reason":"minCount (8) cannot be satisfied"}]}`,
	"podgroup=default%2Fserve": `{"at":"2026-01-01T00:10:00Z","podGroup":"default/serve","outcome":"Fits","placed":0,"waiting":3,"fitting":2,"spec":{"gang":false,"minCount":1}}`,
	"group=small": `{"at":"2026-01-01T00:10:00Z","group":"small","min":0,"max":5,"target":3,"ready":1,"launching":2,"deleting":0,"room":0,"limit":"in backoff after failed scale-up","maxOrder":1,
		"backoff":{"class":"OutOfResources","reason":"no capacity","until":"2026-01-01T00:15:00Z"},"launchControl":["cluster: at most 70 nodes launching at a time"],
		"next":{"ordered":"2026-01-01T00:09:00Z","givenUp":"2026-01-01T00:24:00Z"},"launches":{"launches":20,"medianSeconds":100,"p90Seconds":180},
		"instances":[{"id":"i-1","node":"s2","state":"coming","since":"2026-01-01T00:09:10Z"}],
		"ordered":{"group":"small","at":"2026-01-01T00:09:00Z","from":1,"to":3,"wanted":2,"pods":7,"choice":{"plan":5,"by":"price","options":[{"group":"large","with":["huge"],"nodes":1,"pods":7,"wasted":1.2,"price":4},{"group":"small","nodes":2,"pods":7,"wasted":0.5,"price":1.5}]}},
		"failed":{"at":"2026-01-01T00:09:30Z","nodes":4,"why":"no capacity"}}`,
	"group=large": `{"at":"2026-01-01T00:10:00Z","group":"large","min":1,"max":5,"target":2,"ready":2,"room":3,"nextLimit":"max node group size reached"}`,
	"groups": `{"at":"2026-01-01T00:10:00Z","groups":[{"group":"large","min":1,"max":5,"target":2,"ready":2,"room":3},{"group":"small","min":0,"max":5,"target":3,"ready":1,"launching":2,"room":0,"limit":"in backoff after failed scale-up",
		"backoff":{"until":"2026-01-01T00:15:00Z"},"next":{"likely":"2026-01-01T00:10:40Z"},"ordered":{"at":"2026-01-01T00:09:00Z","from":1,"to":3}}]}`,
}

// nodeAnswers are what it answers to queries about nodes.
var nodeAnswers = map[string]string{
	"node=worker-1": `{"at":"2026-01-01T00:10:00Z","node":"worker-1","group":"small","ready":true,"price":0.4,"state":"Stays","reason":"BlockedByPod","pod":"default/db-0","detail":"would lose its local volume cache",
		"utilization":0.23,"since":"2026-01-01T00:05:00Z","looked":"2026-01-01T00:09:00Z","planned":"2026-01-01T00:09:50Z","changes":["every pod listed below must be evictable or finish"],
		"blocks":[{"pod":"default/db-0","rule":"LocalStorage","why":"would lose its local volume cache","change":"kubectl …"},{"pod":"default/one","rule":"Replicated","why":"has no controller, so nothing would recreate it","change":"wait for it to finish"}],
		"decisions":[{"seq":9,"time":"2026-01-01T00:05:00Z","kind":"NodeStays","node":"worker-1","pod":"default/db-0","reason":"BlockedByPod: would lose its local volume cache"}]}`,
	"node=worker-2": `{"at":"2026-01-01T00:10:00Z","node":"worker-2","group":"small","ready":true,"state":"Candidate","reason":"NotUnneededLongEnough","detail":"unneeded for 8m0s of 10m0s (--scale-down-unneeded-time)","utilization":0.1,
		"since":"2026-01-01T00:02:00Z","due":"2026-01-01T00:12:00Z","planned":"2026-01-01T00:09:50Z","waitsFor":["default/job-1"],"pods":[{"pod":"default/web-1","home":"worker-1"},{"pod":"default/web-20","home":"worker-3"}]}`,
	"node=worker-3": `{"at":"2026-01-01T00:10:00Z","node":"worker-3","ready":false,"state":"Unknown","detail":"no plan has been made since this instance became the leader","awaits":["default/web-3"]}`,
	"node=worker-4": `{"at":"2026-01-01T00:10:00Z","node":"worker-4","group":"small","ready":true,"price":0.4,"state":"Leaving","planned":"2026-01-01T00:09:50Z",
		"leaving":{"step":"draining, 1 waiting, 2 asked","why":"it has been unneeded","next":"2026-01-01T00:11:00Z"},"pods":[{"pod":"default/web-1","home":"worker-3"},{"pod":"default/web-20"}]}`,
	"node=worker-5": `{"at":"2026-01-01T00:10:00Z","node":"worker-5","group":"small","ready":true,"state":"Leaving","leaving":{"step":"in doubt","why":"it has been empty"}}`,
	"nodes": `{"at":"2026-01-01T00:10:00Z","status":"CandidatesPresent","planned":"2026-01-01T00:09:50Z","nodes":125,"price":66,"reasons":[
		{"state":"Stays","reason":"BlockedByPod","nodes":60,"price":36,"node":"worker-1","pod":"a-namespace-with-a-long-name/a-pod-with-a-long-name-0"},
		{"state":"Candidate","reason":"NotUnneededLongEnough","nodes":40,"price":20,"node":"worker-2"},{"state":"Leaving","nodes":20,"price":10,"node":"worker-9"},{"state":"Stays","reason":"NotAutoscaled","nodes":5,"node":"control-plane-1"}],
		"groups":[{"group":"large","nodes":60,"price":36},{"group":"small","nodes":60,"price":30,"candidates":{"nodes":40,"price":20},"leaving":{"nodes":20,"price":10}},{"group":"","nodes":5}]}`,
}

// ask returns the output of berth explain.
func ask(t *testing.T, args ...string) (string, error) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.RawQuery]
		if !ok {
			body, ok = nodeAnswers[r.URL.RawQuery]
		}
		if ok && r.URL.Path == "/debug/explain" {
			_, _ = w.Write([]byte(body))
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
	if got, err := ask(t, "group", "-o", "json"); err != nil || got != answers["groups"] {
		t.Errorf("-o json prints %v\n%s\nwant the answer as it came", err, got)
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
		{[]string{"pod", "a/b/c"}, "berth explain pod NAMESPACE/NAME"},
		{[]string{"pod", ""}, "berth explain pod NAMESPACE/NAME"},
		{[]string{"podgroup"}, "name one pod group: berth explain podgroup NAMESPACE/NAME"},
		{[]string{"podgroup", "a/b/c"}, "name one pod group"},
		{[]string{"group", "a", "b"}, "name one node group"},
		{[]string{"group", ""}, "name one node group"},
		{[]string{"node"}, "name one node"},
		{[]string{"node", ""}, "name one node"},
		{[]string{"node", "a", "b"}, "name one node"},
		{[]string{"nodes", "a"}, "show all: berth explain nodes"},
		{[]string{"pod/"}, "berth explain pod NAMESPACE/NAME"},
		{[]string{"default/p"}, "berth explain pod NAMESPACE/NAME"},
		{[]string{"group", "smal"}, "node group smal not found; similar names are small"},
		{[]string{"group", "small", "-o", "yaml"}, "it must be text or json"},
	} {
		if got, err := ask(t, x.args...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("berth explain %v: %v\n%s\nwant …%s…", x.args, err, got, x.want)
		}
	}
}
