package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestHostileQueries are refused by a clear message, and cost the core nothing.
func TestHostileQueries(t *testing.T) {
	x := newExample(t)
	o, asked := x.options(), 0
	ask := o.Ask
	o.Ask = func(ctx context.Context, q func(*core.Core)) bool { asked++; return ask(ctx, q) }
	a := api.New(o)
	for _, x := range []struct {
		path string
		code int
		want string
	}{
		{"", http.StatusNotFound, "no such path; the API has /api/v1alpha1/decisions,"},
		{"secrets", http.StatusNotFound, "no such path"},
		{"nodes/", http.StatusNotFound, "no such path"},
		{"overview?watch=true", http.StatusBadRequest, `unknown parameter \"watch\"`},
		{"nodes?limit=0", http.StatusBadRequest, `limit is \"0\"; it must be a number from 1 to 5000`},
		{"nodes?limit=99999999999999999999", http.StatusBadRequest, "it must be a number from 1 to 5000"},
		{"nodes?limit=5&limit=6", http.StatusBadRequest, "limit is given 2 times; give it once"},
		{"pods?q=a&q=b&q=a", http.StatusBadRequest, "q is given 3 times; give it once"},
		{"nodes?continue=%21", http.StatusBadRequest, "it must be that of the page before"},
		{"nodes?sort=weight", http.StatusBadRequest, `sort is \"weight\"; it must be age, cpu,`},
		{"nodes?q=" + strings.Repeat("x", 513), http.StatusBadRequest, "q is longer than 512 characters"},
		{"nodes?" + strings.Repeat("group=g&", 65), http.StatusBadRequest, "more than 64 parameters"},
		{"nodes/" + strings.Repeat("x", 601), http.StatusBadRequest, "longer than 600 characters"},
		{"nodes?q=%zz", http.StatusBadRequest, "the query can't be read"},
		{"pods/default", http.StatusBadRequest, "give the pod as pods/NAMESPACE/NAME"},
		{"pods/a/b/c", http.StatusBadRequest, "give the pod as pods/NAMESPACE/NAME"},
		{"pods/default/none", http.StatusNotFound, "pod default/none not found"},
		{"groups/none", http.StatusNotFound, "node group none not found"},
		{"decisions/x", http.StatusBadRequest, `\"x\" is no number of a decision`},
		{"decisions/0", http.StatusNotFound, "decision 0 is not kept; those from 1 to"},
		{"decisions/18446744073709551615", http.StatusNotFound, "is not kept"},
		{"decisions?limit=1001", http.StatusBadRequest, "it must be a number from 1 to 1000"},
		{"decisions?since=-1", http.StatusBadRequest, "it must be the number of a decision"},
		{"decisions?from=yesterday", http.StatusBadRequest, "it must be a time such as"},
		{"series?step=1s", http.StatusBadRequest, "it must be 10s or 5m"},
		{"series?from=yesterday", http.StatusBadRequest, "from is"},
		{"shadow", http.StatusNotFound, "this instance is not a shadow"},
		{"whatif", http.StatusBadRequest, "give remove=NODE, or pods=NUMBER"},
		{"whatif?remove=none", http.StatusNotFound, "node none not found"},
		{"whatif?pods=1001&like=default/web-00002", http.StatusBadRequest, "it must be a number from 1 to 1000"},
		{"whatif?pods=2&like=default/none", http.StatusNotFound, "pod default/none not found"},
		{"whatif?" + strings.Repeat("remove=web-0001&", 30) + manyNodes(21), http.StatusBadRequest, "it may name 20 at most"},
	} {
		code, body := get(a, x.path)
		if code != x.code || !strings.Contains(body, x.want) {
			t.Errorf("%.60s: got %d %.200s, want %d and …%s…", x.path, code, body, x.code, x.want)
		}
	}
	if asked > 8 {
		t.Errorf("the core was asked %d times", asked)
	}
}

// manyNodes returns parameters that name so many nodes.
func manyNodes(n int) string {
	out := url.Values{}
	for i := range n {
		out.Add("remove", fmt.Sprint("n", i))
	}
	return out.Encode()
}

// TestOnlyGET is answered.
func TestOnlyGET(t *testing.T) {
	a := api.New(newExample(t).options())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(method, api.Prefix+"overview", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %d %v", method, w.Code, w.Header())
		}
	}
}

// TestAnInstanceThatStandsBy says who leads, and answers meta.
func TestAnInstanceThatStandsBy(t *testing.T) {
	o := newExample(t).options()
	o.Meta = func() v1alpha1.Meta { return v1alpha1.Meta{Leader: "berth-b_1"} }
	o.Ask = func(context.Context, func(*core.Core)) bool { t.Error("its core was asked"); return false }
	a := api.New(o)
	for _, x := range examples {
		code, body := get(a, x.path)
		if x.path == "meta" {
			if code != http.StatusOK || !strings.Contains(body, `"leading":false`) || !strings.Contains(body, `"leader":"berth-b_1"`) {
				t.Errorf("meta: got %d %s", code, body)
			}
		} else if code != http.StatusServiceUnavailable || !strings.Contains(body, "this instance is standing by; query the leader, berth-b_1") {
			t.Errorf("%s: got %d %s", x.path, code, body)
		}
	}
	if code, body := get(a, "stream"); code != http.StatusServiceUnavailable || !strings.Contains(body, "berth-b_1") {
		t.Errorf("stream: got %d %s", code, body)
	}
}

// TestWhatIfsAreOff unless they are switched on.
func TestWhatIfsAreOff(t *testing.T) {
	o := newExample(t).options()
	o.WhatIf = false
	if code, body := get(api.New(o), "whatif?remove=web-0001"); code != http.StatusNotFound || !strings.Contains(body, "--what-if") {
		t.Errorf("got %d %s", code, body)
	}
}

// TestWhatIfsChangeNothing: the cluster says the same before and after them.
func TestWhatIfsChangeNothing(t *testing.T) {
	x := newExample(t)
	all := func() (out string) {
		a := api.New(x.options()) // which shares no answers with the others
		for _, e := range examples {
			_, body := get(a, e.path)
			out += body
		}
		return out
	}
	before := all()
	for _, path := range []string{"whatif?remove=web-0001&remove=web-0002&remove=db-0001", "whatif?pods=1000&like=team-b/huge-0", "whatif?pods=1000&like=default/relay-00002"} {
		if code, body := get(api.New(x.options()), path); code != http.StatusOK {
			t.Errorf("%s: got %d %s", path, code, body)
		}
	}
	if all() != before {
		t.Error("the answers differ")
	}
	if broken := x.world.Core().Invariants(); len(broken) > 0 {
		t.Errorf("broken invariants: %q", broken)
	}
}

// TestPagesHaveEverythingOnce walks through each list by pages, those of nodes in each order: pages are as long as they may be,
// and together they have all that the list counts.
func TestPagesHaveEverythingOnce(t *testing.T) {
	x := newExample(t)
	var in []step.Input
	for i := range 8 { // in two namespaces, with names that are the same in both
		name, namespace := fmt.Sprint("x", i/2), []string{"default", "team-b"}[i%2]
		group := testkit.PodGroup(name, 2, "")
		group.Namespace, group.UID = namespace, types.UID(namespace+name)
		waits := testkit.Pod(name).Namespaced(namespace).Req("cpu", "900")
		waits.UID = types.UID(namespace + name)
		in = append(in, step.ObjectSet{Object: group}, step.PodSet{Pod: waits.Obj()},
			step.ObjectSet{Object: testkit.ResourceClaim(name, testkit.Request("r", "gpu")).Namespaced(namespace).Obj()})
	}
	x.world.Core().Step(x.now(), door.Must(in...)...)
	a := api.New(x.options())
	type list struct {
		items string // the key of its items
		total int
	}
	lists := map[string]list{"pods?": {"items", 29}, "pods?state=pending&": {"items", 13}, "pods?namespace=team-b&": {"items", 9}, "podgroups?": {"items", 8}, "devices?": {"claims", 9}}
	for _, sort := range []string{"", "name", "age", "cpu", "group", "memory", "pods", "price", "state"} {
		lists["nodes?sort="+sort+"&"] = list{"items", 13}
	}
	for path, of := range lists {
		var names []string
		next := ""
		for pages := 0; pages == 0 || next != ""; pages++ {
			page := map[string]json.RawMessage{}
			head := v1alpha1.List{}
			var items []struct{ Namespace, Name string }
			_, body := get(a, path+"limit=3&continue="+next)
			for _, err := range []error{json.Unmarshal([]byte(body), &page), json.Unmarshal([]byte(body), &head), json.Unmarshal(page[of.items], &items)} {
				if err != nil || head.Total != of.total || pages > of.total/3 {
					t.Fatalf("%s: page %d is (%v) %s", path, pages, err, body)
				}
			}
			if next = head.Continue; next != "" && len(items) != 3 {
				t.Errorf("%s: page %d has %d items and isn't the last", path, pages, len(items))
			}
			for _, o := range items {
				names = append(names, o.Namespace+"/"+o.Name)
			}
		}
		if slices.Sort(names); len(names) != of.total || len(slices.Compact(names)) != of.total {
			t.Errorf("%s: got %v, want all %d once", path, names, of.total)
		}
	}
}

// TestDecisionsAreFiltered by kind, object and number.
func TestDecisionsAreFiltered(t *testing.T) {
	a := api.New(newExample(t).options())
	for _, x := range []struct {
		query       string
		items       int
		first, last uint64
		more        bool
	}{
		{"limit=1000", 43, 1, 43, false},
		{"limit=5", 5, 39, 43, true},
		{"limit=5&before=39", 5, 34, 38, true},
		{"since=40", 3, 41, 43, false},
		{"since=43", 0, 0, 0, false},
		{"pod=default/web-00002", 1, 6, 6, false},
		{"pod=default/none", 0, 0, 0, false},
		{"to=2026-01-01T00:00:00.1Z&kind=Waits", 2, 1, 2, false},
	} {
		list := v1alpha1.DecisionList{}
		_, body := get(a, "decisions?"+x.query)
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Items) != x.items || list.More != x.more || list.First != 1 || list.Last != 43 {
			t.Errorf("%s: got %d items, more %v, of %d to %d", x.query, len(list.Items), list.More, list.First, list.Last)
		} else if x.items > 0 && (list.Items[0].Seq != x.first || list.Items[x.items-1].Seq != x.last) {
			t.Errorf("%s: got %d to %d, want %d to %d", x.query, list.Items[0].Seq, list.Items[x.items-1].Seq, x.first, x.last)
		}
	}
}

// TestThePathsAreInTheSchema: each path of the API has its answer there.
func TestThePathsAreInTheSchema(t *testing.T) {
	a := api.New(newExample(t).options())
	_, body := get(a, "schema")
	schema := struct {
		Defs map[string]struct {
			Properties map[string]any
			Required   []string
		} `json:"$defs"`
	}{}
	if err := json.Unmarshal([]byte(body), &schema); err != nil {
		t.Fatal(err)
	}
	for _, path := range a.Paths() {
		name := strings.TrimPrefix(path, api.Prefix)
		if kind, ok := strings.CutSuffix(name, "/*"); ok {
			name = map[string]string{"nodes": "nodes/NAME", "pods": "pods/NAMESPACE/NAME", "groups": "groups/NAME", "podgroups": "podgroups/NAMESPACE/NAME", "decisions": "decisions/SEQ"}[kind]
		}
		if name == "stream" {
			name = "stream: decisions"
		}
		if name != "schema" && schema.Defs["Answers"].Properties[name] == nil {
			t.Errorf("the schema has no answer of %s", path)
		}
	}
}

// TestALedgerIsReadInChunks: a long ledger is searched to its end, and its oldest decisions are forgotten.
func TestALedgerIsReadInChunks(t *testing.T) {
	x := newExample(t)
	x.history = observe.NewHistory(3000)
	for i := range 5000 {
		kind := step.Placed
		if i%1000 == 500 {
			kind = step.Waits
		}
		x.history.Step(time.Time{}, 0, nil, &step.Ready{Decisions: []step.Decision{{Seq: uint64(i + 1), Kind: kind, Pod: "default/p"}}})
	}
	list := v1alpha1.DecisionList{}
	_, body := get(api.New(x.options()), "decisions?kind=Waits&limit=1000")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Items) != 3 || list.Items[0].Seq != 2501 || list.First != 2001 || list.Last != 5000 {
		t.Errorf("got %s", body)
	}
}

// TestViewersOfTheChartMayGetEverythingButWhatIfs: the ClusterRole names each path.
func TestViewersOfTheChartMayGetEverythingButWhatIfs(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "chart", "templates", "viewer.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for line := range strings.Lines(string(raw)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "- /api/"); ok {
			granted = append(granted, "/api/"+path)
		}
	}
	want := slices.DeleteFunc(api.New(newExample(t).options()).Paths(), func(path string) bool { return path == api.Prefix+"whatif" })
	if !slices.Equal(granted, want) {
		t.Errorf("the role has\n%q\nwant\n%q", granted, want)
	}
}

// TestADetailIsOneQuestion: whoever opens a pod, a pod group, a node or a node group waits for one turn at the core, and for one
// more where there is none of the name.
func TestADetailIsOneQuestion(t *testing.T) {
	o, asked := newExample(t).options(), 0
	ask := o.Ask
	o.Ask = func(ctx context.Context, q func(*core.Core)) bool { asked++; return ask(ctx, q) }
	a := api.New(o)
	for _, x := range []struct {
		path string
		want int
	}{
		{"pods/team-b/huge-0", 1}, {"pods/default/web-00002", 1}, {"nodes/db-0001", 1}, {"groups/spot", 1}, {"podgroups/default/none", 1},
		{"pods/default/none", 2}, {"nodes/none", 2},
	} {
		before := asked
		if get(a, x.path); asked-before != x.want {
			t.Errorf("%s: the core was asked %d times, want %d", x.path, asked-before, x.want)
		}
	}
}

// TestPagesOfEachListShareAnAnswer: pods that wait, and pod groups, are read page by page as nodes are.
func TestPagesOfEachListShareAnAnswer(t *testing.T) {
	x := newExample(t)
	o, asked, now := x.options(), 0, x.now()
	ask := o.Ask
	o.Ask = func(ctx context.Context, q func(*core.Core)) bool { asked++; return ask(ctx, q) }
	o.Now = func() time.Time { return now }
	a := api.New(o)
	for _, path := range []string{"nodes?", "pods?state=pending&", "pods?", "podgroups?"} {
		for _, x := range []struct {
			what  string
			query string
			later time.Duration
			want  int // questions to the core
		}{
			{"the first page", "", 0, 1},
			{"the next one, some ticks later", "continue=YQ", 6 * time.Second, 0},
			{"the first page again", "continue=", 0, 1},
			{"the next one, too late", "continue=YQ", 10 * time.Second, 1},
		} {
			now = now.Add(x.later)
			before := asked
			if code, body := get(a, path+x.query); asked-before != x.want || code != http.StatusOK {
				t.Errorf("%s: %s: status %d %s, %d questions, want %d", path, x.what, code, body, asked-before, x.want)
			}
		}
	}
}
