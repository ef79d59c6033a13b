package live

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/leader"
	"github.com/berthproject/berth/internal/test/testkit"
)

// writtenAPI is an API server that notes what is written, a provider that notes what is
// changed, and extenders that note what they bind.
type writtenAPI struct {
	mu      sync.Mutex
	written []string
}

func (a *writtenAPI) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written = append(a.written, what)
}

// take returns what was written since the last call, each once, sorted.
func (a *writtenAPI) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := slices.Compact(slices.Sorted(slices.Values(a.written)))
	a.written = nil
	return out
}

// RoundTrip implements http.RoundTripper. Of reads there are a node and a Deployment that makes
// a successor first.
func (a *writtenAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	var answer any = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	switch {
	case r.Method != http.MethodGet:
		path := r.URL.Path
		if i := strings.LastIndex(path, "/events/"); i >= 0 {
			path = path[:i]
		}
		a.note(r.Method + " " + path)
	case strings.Contains(r.URL.Path, "/deployments/"):
		d := surgeable()
		d.TypeMeta = metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}
		answer = d
	case strings.Contains(r.URL.Path, "/configmaps/"):
		answer = v1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "name"}}
	case strings.Contains(r.URL.Path, "/resourceclaims/"):
		answer = resourcev1.ResourceClaim{TypeMeta: metav1.TypeMeta{Kind: "ResourceClaim", APIVersion: "resource.k8s.io/v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}}
	default:
		n := testkit.Node("n").Obj()
		n.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		answer = n
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)), Request: r}, nil
}

func (a *writtenAPI) Groups(context.Context) ([]nodegroup.Group, error) { return nil, nil }
func (a *writtenAPI) GroupOf(*v1.Node) string                           { return "" }
func (a *writtenAPI) IncreaseSize(context.Context, string, int) error {
	a.note("increase")
	return nil
}
func (a *writtenAPI) DeleteNodes(context.Context, string, []nodegroup.Instance) error {
	a.note("delete nodes")
	return nil
}
func (a *writtenAPI) DecreaseTargetSize(context.Context, string, int) error {
	a.note("decrease")
	return nil
}
func (a *writtenAPI) Concerned(*v1.Pod) string { return "" }
func (a *writtenAPI) Ask(_ context.Context, q step.Consult, _ []*v1.Node) step.Consulted {
	return step.Consulted{UID: q.UID}
}
func (a *writtenAPI) Bind(context.Context, step.Bind) error {
	a.note("extender binds")
	return nil
}

// allWork returns work of each kind, by the method of drive.Workers. Outcomes that are owed go to done.
func allWork(t *testing.T, done func(error)) map[string]func(drive.Workers) {
	t.Helper()
	work := map[string]func(w drive.Workers){
		"Consult": func(w drive.Workers) {
			w.Consult(step.Consult{UID: "c", Pod: testkit.Pod("c").Obj()}, func(answer step.Consulted) { done(answer.Err) })
		},
		"Bind": func(w drive.Workers) {
			w.Bind(step.Bind{UID: "b", Namespace: "ns", Name: "b", Node: "n"}, done)
			w.Bind(step.Bind{UID: "x", Namespace: "ns", Name: "x", Node: "n", Extender: true}, done)
			claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}}
			w.Bind(step.Bind{UID: "v", Namespace: "ns", Name: "v", Node: "n", Writes: []cluster.Object{claim}}, done)
		},
		"Cancel": func(w drive.Workers) { w.Cancel(step.Cancel{UID: "gone"}) },
		"Deallocate": func(w drive.Workers) {
			w.Deallocate(step.Deallocation{Namespace: "ns", Name: "r", Delete: true}, done)
		},
		"Preempt": func(w drive.Workers) { w.Preempt(step.Preemption{UID: "p", Namespace: "ns", Name: "p"}, done) },
		"Nominate": func(w drive.Workers) {
			w.Nominate(step.Nomination{UID: "o", Namespace: "ns", Name: "o", Node: "n"}, done)
		},
		"Condition": func(w drive.Workers) { w.Condition(step.Condition{UID: "k", Namespace: "ns", Name: "k"}) },
		"Event":     func(w drive.Workers) { w.Event(step.Event{Kind: "Pod", Namespace: "ns", Name: "e", UID: "e"}) },
		"WriteStatus": func(w drive.Workers) {
			w.WriteStatus(step.StatusWrite{UID: "s", Namespace: "ns", Name: "s"}, done)
		},
		"Taint":   func(w drive.Workers) { w.Taint(step.Taint{Node: "n", Taint: v1.Taint{Key: "k"}}, done) },
		"Evict":   func(w drive.Workers) { w.Evict(step.Eviction{UID: "v", Namespace: "ns", Name: "v"}, done) },
		"Surge":   func(w drive.Workers) { w.Surge(step.Surge{UID: "d", Namespace: "ns", Deployment: "web"}, done) },
		"ScaleUp": func(w drive.Workers) { w.ScaleUp(step.ScaleUp{Group: "up", Nodes: 1}, done) },
		"DeleteNodes": func(w drive.Workers) {
			w.DeleteNodes([]step.NodeDeletion{{Group: "down", Node: "n"}}, func(_ step.NodeDeletion, err error) { done(err) })
		},
		"DecreaseTarget": func(w drive.Workers) { w.DecreaseTarget(step.TargetDecrease{Group: "less", Nodes: 1}) },
		"Plan": func(w drive.Workers) {
			w.Plan(func() *autoscaler.Plan { return &autoscaler.Plan{} }, func(*autoscaler.Plan) {})
		},
	}
	kinds := reflect.TypeFor[drive.Workers]()
	for i := range kinds.NumMethod() {
		if name := kinds.Method(i).Name; work[name] == nil {
			t.Errorf("the test has no work for %s", name)
		}
	}
	return work
}

// TestNoWorkerWritesWhileTheFenceIsClosed gives every worker its work while the Lease isn't
// held for certain: nothing is written. With the renewal all of it is, which shows that all of
// it was waiting for that.
func TestNoWorkerWritesWhileTheFenceIsClosed(t *testing.T) {
	work := allWork(t, func(error) {})
	want := []string{
		"DELETE /api/v1/namespaces/ns/pods/p", "DELETE /apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/r", "PATCH /api/v1/namespaces/ns/pods/k/status", "PATCH /api/v1/namespaces/ns/pods/o/status",
		"PATCH /api/v1/namespaces/ns/pods/p/status", "PATCH /api/v1/nodes/n", "PATCH /apis/apps/v1/namespaces/ns/deployments/web",
		"PATCH /apis/autoscaling.x-k8s.io/v1beta1/namespaces/ns/capacitybuffers/s/status",
		"POST /api/v1/namespaces/ns/pods/b/binding", "POST /api/v1/namespaces/ns/pods/v/eviction", "POST /apis/events.k8s.io/v1/namespaces/ns/events",
		"PUT /api/v1/namespaces/ns/configmaps/name", "PUT /api/v1/namespaces/ns/persistentvolumeclaims/claim",
		"decrease", "delete nodes", "extender binds", "increase",
	}
	synctest.Test(t, func(t *testing.T) {
		api, fence := &writtenAPI{}, leader.NewFence()
		scale := core.DefaultAutoscale()
		o := Options{Core: core.Config{Autoscale: &scale}, Provider: api, Extenders: api, Fence: fence, Health: NewHealth(true), Log: slog.New(slog.DiscardHandler)}
		o.fence()
		base := fence.Config(&rest.Config{Host: "http://api", QPS: -1, Transport: api})
		clients, err := newClients(base, func() bool { return false }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		w := newWorkers(ctx, o, clients, &load{})
		w.cloud = newCloud(o.Provider, time.Hour, func(step.Input) {}, o.Log)
		w.readFrom(newCaches(kubernetes.New(nil), transformFor(false), NewHealth(true), slog.New(slog.DiscardHandler)), clients)
		w.run(&wg)
		status := newStatusWriter(clients.node, "ns", "name", time.Hour, o.Log)
		status.run(ctx, &wg)

		for _, do := range work {
			do(w)
		}
		status.update(time.Now(), func() explain.ScalingStatus { return explain.ScalingStatus{} })
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := api.take(); len(got) > 0 {
			t.Errorf("written while the fence is closed:\n%s", strings.Join(got, "\n"))
		}
		fence.Renew(time.Now(), time.Minute)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if got := api.take(); !slices.Equal(got, want) {
			t.Errorf("written when it was open:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		stop()
		fence.Close()
		wg.Wait()
	})
}
