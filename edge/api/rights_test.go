package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// granting lets users list the pods of namespaces, "" for all, and counts what it is asked.
type granting struct {
	authorizer.Authorizer                     // nil: nothing else is asked
	may                   map[string][]string // by user
	asked                 int
	err                   error
}

// Authorize implements authorizer.Authorizer.
func (g *granting) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	g.asked++
	if a.GetVerb() != "list" || a.GetResource() != "pods" || !a.IsResourceRequest() {
		return authorizer.DecisionDeny, "", nil
	}
	for _, namespace := range g.may[a.GetUser().GetName()] {
		if namespace == a.GetNamespace() {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", g.err
}

// as has a request come from a user.
func (g *granting) as(name string) func(*http.Request) {
	return func(r *http.Request) {
		*r = *r.WithContext(apirequest.WithUser(r.Context(), &user.DefaultInfo{Name: name}))
	}
}

// TestNoNamesOfOthers asks every path as somebody who may list the pods of one namespace, of none, and of
// all: the names of pods of team-b, and what its workloads are called, reach only those who may read them.
func TestNoNamesOfOthers(t *testing.T) {
	x := newExample(t)
	o := x.options()
	rights := &granting{may: map[string][]string{"admin": {""}, "b": {"team-b"}, "a": {"default"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	// What the cluster says of pods, by namespace.
	names := map[string][]string{"team-b": {"team-b/", "night-0", "huge-0"}, "default": {"default/web", "web-00002", "db-0\"", "cron-0", "infer-0", "relay-00002", "etl-0"}}
	for _, x := range examples {
		for viewer, sees := range map[string]string{"admin": "team-b default", "a": "default", "b": "team-b", "nobody": "", "": ""} {
			as := rights.as(viewer)
			if viewer == "" {
				as = func(*http.Request) {} // nobody says who asks
			}
			code, body := get(a, x.path, as)
			if code == http.StatusNotFound && viewer != "admin" && strings.Contains(x.path, "/default/") || x.file == "error" {
				body = "" // the answer repeats what was asked for
			} else if code == http.StatusNotFound {
				body = strings.ReplaceAll(body, "team-b/huge-0", "")
			} else if code != http.StatusOK {
				t.Errorf("%s as %q: got %d %s", x.path, viewer, code, body)
			}
			if x.file == "whatif-like" {
				body = strings.ReplaceAll(body, "default/web-00002", "")
			}
			for namespace, hidden := range names {
				for _, name := range hidden {
					if !strings.Contains(sees, namespace) && strings.Contains(body, name) {
						t.Errorf("%s tells %q of %s:\n%s", x.path, viewer, name, body)
					}
				}
			}
		}
	}
}

// TestHiddenPodsAreCounted for somebody who may list the pods of one namespace.
func TestHiddenPodsAreCounted(t *testing.T) {
	x := newExample(t)
	o := x.options()
	rights := &granting{may: map[string][]string{"b": {"team-b"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	list := v1alpha1.PodList{}
	_, body := get(a, "pods", rights.as("b"))
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if list.Total != 21 || list.Hidden != 16 || len(list.Items) != 5 {
		t.Errorf("got %d items, %d of %d hidden; want 5, and 16 of 21 hidden", len(list.Items), list.Hidden, list.Total)
	}
	meta := v1alpha1.Meta{}
	if _, body = get(a, "meta", rights.as("b")); json.Unmarshal([]byte(body), &meta) != nil || meta.Viewer.Name != "b" || meta.Viewer.AllNamespaces {
		t.Errorf("meta: %s", body)
	}
	// Somebody else's names can't be found out by asking for them, either.
	for _, path := range []string{"pods?q=web-00002", "pods?owner=ReplicaSet/web", "decisions?pod=default/web-00002"} {
		if _, body := get(a, path, rights.as("b")); !strings.Contains(body, `"items":[]`) || strings.Contains(body, `"hidden":1`) {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// TestRightsAreAskedFewTimes: verdicts are kept, and one request asks about few namespaces.
func TestRightsAreAskedFewTimes(t *testing.T) {
	x := newExample(t)
	o := x.options()
	rights := &granting{}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	for range 20 {
		get(a, "pods", rights.as("nobody"))
		get(a, "overview", rights.as("nobody"))
	}
	if rights.asked != 3 { // all, default and team-b
		t.Errorf("the API server was asked %d times, want 3", rights.asked)
	}
	// One that can't answer is asked again, and nothing is shown meanwhile.
	rights.err = fmt.Errorf("no connection")
	for range 2 {
		if _, body := get(a, "pods", rights.as("other")); !strings.Contains(body, `"items":[]`) {
			t.Errorf("without an answer: %s", body)
		}
	}
	if rights.asked != 9 {
		t.Errorf("the API server was asked %d times, want 9", rights.asked)
	}
}

// TestHiddenTexts: what may name any pod, as why a node stays, is for those who may read all pods.
func TestHiddenTexts(t *testing.T) {
	x := newExample(t)
	o := x.options()
	rights := &granting{may: map[string][]string{"admin": {""}, "b": {"team-b"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	for viewer, told := range map[string]bool{"admin": true, "b": false} {
		list := v1alpha1.DecisionList{}
		_, body := get(a, "decisions?kind=NodeStays&node=gpu-0001", rights.as(viewer))
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Items) != 1 || (list.Items[0].Reason != "") != told || list.Items[0].Hidden == told {
			t.Errorf("%s is told %s", viewer, body)
		}
		node := v1alpha1.NodeDetail{}
		_, body = get(a, "nodes/db-0001", rights.as(viewer))
		if err := json.Unmarshal([]byte(body), &node); err != nil || (node.Detail != "") != told || (node.Reason == "") {
			t.Errorf("%s is told of a node that stays: %s", viewer, body)
		}
	}
}

// TestVictimsOfOthersAreNotNamed: what a pod has had leave may be in namespaces that the viewer may not read.
func TestVictimsOfOthersAreNotNamed(t *testing.T) {
	x := newExample(t)
	x.history.Step(x.now(), 0, nil, &step.Ready{Decisions: []step.Decision{{Time: x.now(), Kind: step.Preempts, Pod: "team-b/urgent", Node: "db-0001", Victims: []string{"team-a/secret"}}}})
	o := x.options()
	rights := &granting{may: map[string][]string{"admin": {""}, "b": {"team-b"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	for viewer, told := range map[string]bool{"admin": true, "b": false} {
		code, body := get(a, "pods/team-b/urgent", rights.as(viewer))
		if code != http.StatusOK || strings.Contains(body, "secret") != told || !strings.Contains(body, "Preempts") {
			t.Errorf("%s is told, %d: %s", viewer, code, body)
		}
	}
}

// TestOneUserLeavesRoomForOthers: whoever asks for everything at once, and waits for a busy core, has few answers
// made at a time. Others get theirs meanwhile where they need no core, and their turn at the core.
func TestOneUserLeavesRoomForOthers(t *testing.T) {
	x := newExample(t)
	o := x.options()
	var asking atomic.Int64
	free := make(chan struct{})
	ask := o.Ask
	o.Ask = func(ctx context.Context, question func(*core.Core)) bool {
		asking.Add(1)
		<-free
		return ask(ctx, question)
	}
	rights := &granting{may: map[string][]string{"a": {""}, "b": {""}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	for _, as := range []string{"a", "b"} { // so that rights are known, and asked about by one goroutine
		get(a, "schema", rights.as(as))
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() { get(a, fmt.Sprintf("pods/default/web-%05d", i), rights.as("a")) })
	}
	for asking.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // the others wait by now
	for _, path := range []string{"schema", "decisions", "series"} {
		if code, body := get(a, path, rights.as("b")); code != http.StatusOK {
			t.Errorf("%s for another: got %d %s", path, code, body)
		}
	}
	close(free)
	all.Wait()
}

// TestManyUsersLeaveRoomForOthers: however many users ask for as much as they may, and a core takes long to answer, another is
// answered what needs no core, and what he asks of the core is next.
func TestManyUsersLeaveRoomForOthers(t *testing.T) {
	x := newExample(t)
	synctest.Test(t, func(t *testing.T) {
		o := x.options()
		var clock atomic.Int64 // so that each question has taken 50 ms, and the core has 4 s until the next
		o.Now = func() time.Time { return x.now().Add(time.Duration(clock.Add(1)) * 50 * time.Millisecond) }
		rights := &granting{may: map[string][]string{"viewer": {""}}}
		var users []string
		for i := range 10 {
			users = append(users, fmt.Sprint("user", i))
			rights.may[users[i]] = []string{""}
		}
		o.Rights = api.NewRights(rights)
		a := api.New(o)
		for _, name := range append(users, "viewer") { // so that rights are known, and asked about by one goroutine
			get(a, "schema", rights.as(name))
		}
		var all sync.WaitGroup
		for _, name := range users {
			for i := range 4 {
				all.Go(func() {
					for range 20 {
						get(a, fmt.Sprintf("podgroups/default/%s-%d", name, i), rights.as(name))
					}
				})
			}
		}
		time.Sleep(time.Minute) // each of them has had a turn by now
		for _, path := range []string{"schema", "decisions", "overview", "groups"} {
			if code, body := get(a, path, rights.as("viewer")); code != http.StatusOK {
				t.Errorf("%s: got %d %s", path, code, body)
			}
		}
		all.Wait()
		time.Sleep(time.Hour)
	})
}

// byScope lets users list pods with a token that has the scope for it, whatever else they may do.
type byScope struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (byScope) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetExtra()["scopes"], "pods") {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny, "", nil
}

// TestRightsAreOfAToken: a verdict about a user holds for the same extra values alone, and two users whose names,
// groups and values read the same in a row are two.
func TestRightsAreOfAToken(t *testing.T) {
	x := newExample(t)
	o := x.options()
	o.Rights = api.NewRights(byScope{})
	a := api.New(o)
	for _, u := range []struct {
		user user.DefaultInfo
		all  bool
	}{
		{user.DefaultInfo{Name: "jane", Extra: map[string][]string{"scopes": {"pods"}}}, true},
		{user.DefaultInfo{Name: "jane"}, false},
		{user.DefaultInfo{Name: "jane", Groups: []string{"scopes", "pods"}}, false},
		{user.DefaultInfo{Name: "jane", Extra: map[string][]string{"scopes": {}, "pods": {}}}, false},
		{user.DefaultInfo{Name: "jane", Extra: map[string][]string{"scopes": {"nodes"}}}, false},
		{user.DefaultInfo{Name: "jane", Extra: map[string][]string{"scopes": {"nodes", "pods"}}}, true},
	} {
		as := func(r *http.Request) { *r = *r.WithContext(apirequest.WithUser(r.Context(), &u.user)) }
		meta := v1alpha1.Meta{}
		if _, body := get(a, "meta", as); json.Unmarshal([]byte(body), &meta) != nil || meta.Viewer.AllNamespaces != u.all {
			t.Errorf("%+v sees all namespaces: %t, want %t", u.user, meta.Viewer.AllNamespaces, u.all)
		}
	}
}
