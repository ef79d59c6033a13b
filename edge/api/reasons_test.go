package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has pods whose reasons have names in them: of claims, gates, pod groups and schedulers.

// secrets are what reasons of pods of team-b name.
var secrets = []string{"secret-data", "secret-logs", "secret-gate", "secret-group", "secret-scheduler", "secret-pod-scratch"}

// withReasons adds pods of team-b and of default to an example, and returns options of an API whose clock is two minutes on:
// long enough for pods that no node takes to need attention. Its streams end after their first events.
func (x *example) withReasons() api.Options {
	b := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Namespaced("team-b") }
	var in []step.Input
	for _, p := range []*testkit.PodBuilder{
		b("secret-1").Uses("secret-data"), b("secret-2").Uses("secret-logs"), b("secret-pod").Ephemeral("scratch"), b("secret-3").Gate("example.com/secret-gate"),
		b("secret-4").PodGroup("secret-group"), b("secret-5").With(func(p *v1.Pod) { p.Spec.SchedulerName = "secret-scheduler" }),
		b("secret-6").Uses("secret-data").On("web-0001"), testkit.Pod("mine").Uses("my-data"), testkit.Pod("my-other").Gate("example.com/my-gate"),
	} {
		in = append(in, step.PodSet{Pod: p.Obj()})
	}
	ready := x.world.Core().Step(x.now(), door.Must(in...)...)
	ready.Decisions = append(ready.Decisions, step.Decision{Seq: ready.Decisions[len(ready.Decisions)-1].Seq + 1, Time: x.now(), Kind: step.PreemptionFailed, Pod: "default/mine", Node: "web-0001", Reason: `pods "secret-6" is forbidden`})
	x.history.Step(x.now(), 0, nil, &ready)
	o, ended := x.options(), make(chan struct{})
	close(ended)
	meta := o.Meta
	o.Meta = func() v1alpha1.Meta { m := meta(); m.Now = x.now().Add(2 * time.Minute); return m }
	o.Ended = ended
	return o
}

// TestNoReasonsOfOthers asks for everything in which a reason may be, as viewers who may not list the pods of team-b: nothing
// that its pods, claims, gates and groups are called is in any answer. Those who may are told all of it.
func TestNoReasonsOfOthers(t *testing.T) {
	o := newExample(t).withReasons()
	rights := &granting{may: map[string][]string{"admin": {""}, "b": {"team-b"}, "a": {"default"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	since := func(r *http.Request) { r.Header.Set("Last-Event-ID", "1p3k.40") } // for the stream
	for viewer, told := range map[string]bool{"admin": true, "b": true, "a": false, "nobody": false} {
		all := ""
		for _, path := range []string{
			"overview", "stream", "pending", "pods?state=pending", "pods?limit=1000", "podgroups", "nodes/web-0001", "money", "devices", "groups",
			"decisions?limit=1000", "whatif?remove=web-0001", "whatif?remove=web-0001&remove=web-0002",
		} {
			code, body := get(a, path, rights.as(viewer), since)
			if code != http.StatusOK {
				t.Errorf("%s as %q: got %d %s", path, viewer, code, body)
			}
			if i := strings.Index(body, "secret-"); i >= 0 && !told {
				t.Errorf("%s tells %q of …%.100s…", path, viewer, body[max(0, i-50):])
			}
			all += body
		}
		for _, path := range []string{"podgroups/team-b/secret-group", "pods/team-b/secret-1", "whatif?pods=3&like=team-b/secret-1"} {
			code, body := get(a, path, rights.as(viewer))
			if (code == http.StatusOK) != told {
				t.Errorf("%s as %q: got %d %s", path, viewer, code, body)
			}
			all += body
		}
		for _, name := range secrets {
			if told && !strings.Contains(all, name) {
				t.Errorf("%q isn't told of %s", viewer, name)
			}
		}
	}
}

// TestReasonsThatArentShownAreCounted: pods whose reason a viewer may not know are in one line for each state and plugin, counts
// stay what they are, and a reason that a pod of the viewer's own has is told.
func TestReasonsThatArentShownAreCounted(t *testing.T) {
	o := newExample(t).withReasons()
	rights := &granting{may: map[string][]string{"admin": {""}, "a": {"default"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	type line struct{ state, reason, plugin string }
	for _, viewer := range []string{"admin", "a"} {
		overview, pending := v1alpha1.Overview{}, v1alpha1.Pending{}
		for path, to := range map[string]any{"overview": &overview, "pending": &pending} {
			if code, body := get(a, path, rights.as(viewer)); code != http.StatusOK || json.Unmarshal([]byte(body), to) != nil {
				t.Fatalf("%s: %d %s", path, code, body)
			}
		}
		lines := map[line]int{}
		sum, own := 0, 0
		for _, p := range overview.Pending {
			of := line{string(p.State), p.Reason, p.Plugin}
			if lines[of] != 0 {
				t.Errorf("%s has two lines %+v", viewer, of)
			}
			if lines[of], sum = p.Pods, sum+p.Pods; strings.Contains(p.Reason, "my-") {
				own++
			}
		}
		if sum != overview.Pods.Pending || own != 2 {
			t.Errorf("%s: the lines have %d of %d pods, and %d reasons of the two of default: %+v", viewer, sum, overview.Pods.Pending, own, overview.Pending)
		}
		for _, p := range pending.Reasons {
			of := line{string(p.State), p.Reason, p.Plugin}
			if lines[of] != p.Pods {
				t.Errorf("%s: pending has %d pods of %+v, the overview %d", viewer, p.Pods, of, lines[of])
			}
			if delete(lines, of); p.Reason == "" && p.Hidden != p.Pods {
				t.Errorf("%s isn't told why %d of %d pods wait that may be read", viewer, p.Pods-p.Hidden, p.Pods)
			}
		}
		if len(lines) > 0 {
			t.Errorf("%s: pending lacks %+v", viewer, lines)
		}
	}
}

// TestReasonsCantBeGuessed: who may not list the pods of a namespace isn't told how many have a reason that he asks for, since
// that would confirm a name in it.
func TestReasonsCantBeGuessed(t *testing.T) {
	o := newExample(t).withReasons()
	rights := &granting{may: map[string][]string{"admin": {""}, "a": {"default"}}}
	o.Rights = api.NewRights(rights)
	a := api.New(o)
	for viewer, want := range map[string]int{"admin": 1, "a": 0} {
		list := v1alpha1.PodList{}
		_, body := get(a, "pods?state=pending&reason="+url.QueryEscape(`persistentvolumeclaim "secret-logs" not found`), rights.as(viewer))
		if err := json.Unmarshal([]byte(body), &list); err != nil || list.Total != want || list.Hidden != 0 {
			t.Errorf("%s is told of %d pods, %d hidden; want %d: %s", viewer, list.Total, list.Hidden, want, body)
		}
	}
}
