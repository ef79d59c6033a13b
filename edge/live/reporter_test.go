package live

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/step"
)

func TestReporterKeepsTheLatestConditionOnly(t *testing.T) {
	r := newReporter(nil, nil, "host", nil, &load{})
	r.condition(step.Condition{UID: "a", Message: "old"})
	r.condition(step.Condition{UID: "b", Message: "b"})
	r.condition(step.Condition{UID: "a", Message: "new"})
	r.condition(step.Condition{UID: "c", Message: "c"})
	r.drop("c")
	var got []string
	for x := r.next(&r.conditional); x != nil; x = r.next(&r.conditional) {
		got = append(got, x.condition.Message)
	}
	if len(got) != 2 || got[0] != "new" || got[1] != "b" {
		t.Errorf("got %v, want [new b]", got)
	}
}

// TestAConditionThatABindHasDroppedIsWrittenWhenItFails, whether it waited or was being written, unless
// there is a newer one.
func TestAConditionThatABindHasDroppedIsWrittenWhenItFails(t *testing.T) {
	for _, c := range []struct {
		name             string
		isWritten, newer bool // the condition was being written; another came during the bind
		bind, call       error
		want             string // message of the condition that is written in the end, "" for none
	}{
		{"it waited, and the bind fails", false, false, errCancelled, nil, "why"},
		{"it waited, and the pod is bound", false, false, nil, nil, ""},
		{"it waited, and a newer comes", false, true, errCancelled, nil, "newer"},
		{"it was being written in vain", true, false, errCancelled, errBinding, "why"},
		{"it was written", true, false, errCancelled, nil, ""},
	} {
		r := newReporter(nil, nil, "host", nil, &load{})
		r.condition(step.Condition{UID: "p", Message: "why"})
		var call *reportCall
		if c.isWritten {
			call = r.next(&r.conditional)
		}
		r.drop("p")
		if c.isWritten {
			r.finish(call, c.call)
		}
		if c.newer {
			r.condition(step.Condition{UID: "p", Message: "newer"})
		}
		r.bindEnded("p", c.bind)
		got := ""
		if x := r.next(&r.conditional); x != nil {
			got = x.condition.Message
		}
		if got != c.want || len(r.unwritten) != 0 {
			t.Errorf("%s: %q is written, want %q; %d are kept, want none", c.name, got, c.want, len(r.unwritten))
		}
	}
}

// TestReporterWritesAPodsStatusInOneCall gives it a condition and nominations of a
// pod, and drops what another pod waits with.
func TestReporterWritesAPodsStatusInOneCall(t *testing.T) {
	client := fake.NewClientset()
	var patches []string
	client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patches = append(patches, string(a.(clienttesting.PatchAction).GetPatch()))
		return true, &v1.Pod{}, nil
	})
	var out []string
	r := newReporter(client, client, "host", slog.New(slog.DiscardHandler), &load{})
	nominate := func(n step.Nomination) {
		r.nominate(job[step.Nomination]{n, func(err error) { out = append(out, fmt.Sprint(n.Name, " to ", n.Node, ": ", err)) }})
	}
	nominate(step.Nomination{UID: "a", Name: "a", Node: "n1"})
	r.condition(step.Condition{UID: "a", Name: "a", Reason: "Unschedulable", Message: "why"})
	nominate(step.Nomination{UID: "a", Name: "a", Node: "n2"})
	nominate(step.Nomination{UID: "b", Name: "b"})
	nominate(step.Nomination{UID: "c", Name: "c", Node: "n3"})
	r.drop("c")
	for x := r.next(&r.nominated); x != nil; x = r.next(&r.nominated) {
		r.finish(x, r.write(t.Context(), client, x))
	}
	if n := r.nominating.Load(); n != 0 {
		t.Errorf("%d nominations count as waiting when all are written or dropped", n)
	}
	if len(patches) != 2 || !strings.Contains(patches[0], `"message":"why"`) || !strings.Contains(patches[0], `"nominatedNodeName":"n2"`) ||
		!strings.Contains(patches[0], `"uid":"a"`) || !strings.Contains(patches[1], `"nominatedNodeName":null`) {
		t.Errorf("patches %q", patches)
	}
	want := []string{fmt.Sprint("c to n3: ", errBinding), "a to n2: <nil>", "b to : <nil>"}
	if !slices.Equal(out, want) {
		t.Errorf("outcomes %q, want %q", out, want)
	}
}

// TestReporterEmitsTheEventOfAConditionThatWasWritten shows that people don't read of
// a pod that is gone, and that the API's answer is the nomination's outcome.
func TestReporterEmitsTheEventOfAConditionThatWasWritten(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	for _, answer := range []error{nil, gone} {
		client := fake.NewClientset()
		client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &v1.Pod{}, answer })
		r := newReporter(client, client, "host", slog.New(slog.DiscardHandler), &load{})
		outcomes := []error{}
		err := r.write(t.Context(), client, &reportCall{report: report{
			condition:  &step.Condition{UID: "p", Name: "p", Event: &step.Event{Reason: "FailedScheduling"}},
			nomination: &job[step.Nomination]{step.Nomination{UID: "p", Name: "p"}, func(err error) { outcomes = append(outcomes, err) }},
		}})
		if err != answer {
			t.Errorf("got %v, want the API's answer %v", err, answer)
		}
		if want := answer == nil; want != (len(r.backlog) == 1) {
			t.Errorf("after %v there are %d events, want one only of a condition that was written", answer, len(r.backlog))
		}
		if len(outcomes) != 1 || outcomes[0] != answer {
			t.Errorf("outcomes of the nomination: %v, want [%v]", outcomes, answer)
		}
	}
}

// TestAConditionSaysOfWhichGenerationItIs, as kube-scheduler's does.
func TestAConditionSaysOfWhichGenerationItIs(t *testing.T) {
	client := fake.NewClientset(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "a"}})
	if _, _, err := patchStatus(t.Context(), client, report{condition: &step.Condition{UID: "a", Namespace: "default", Name: "a", Generation: 7}}); err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || len(pod.Status.Conditions) != 1 || pod.Status.Conditions[0].ObservedGeneration != 7 {
		t.Errorf("the conditions are %+v (%v), want one of generation 7", pod.Status.Conditions, err)
	}
}

// TestTransitionTimeIsOfTheStatus: it moves only when the status does.
func TestTransitionTimeIsOfTheStatus(t *testing.T) {
	client := fake.NewClientset()
	patch := ""
	client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch = string(a.(clienttesting.PatchAction).GetPatch())
		return true, &v1.Pod{}, nil
	})
	since := time.Unix(1000, 0)
	if _, _, err := patchStatus(t.Context(), client, report{condition: &step.Condition{UID: "a", Name: "a", Since: since}}); err != nil {
		t.Fatal(err)
	}
	if want := `"lastTransitionTime":"` + since.UTC().Format(time.RFC3339) + `"`; !strings.Contains(patch, want) {
		t.Errorf("the patch is %s, want %s in it", patch, want)
	}
}

// TestNominationsDoNotWaitForConditions has each write take a second: several nominations are
// written beside each other and before the conditions of other pods, but one pod's one after the
// other.
func TestNominationsDoNotWaitForConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		var mu sync.Mutex
		underWay := map[string]int{}
		client := fake.NewClientset()
		client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, &v1.Pod{}, nil
		})
		slow := func(name string) {
			mu.Lock()
			if underWay[name]++; underWay[name] > 1 {
				t.Errorf("two calls of pod %s at a time", name)
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			underWay[name]--
			mu.Unlock()
		}
		r := newReporter(slowPods{client, slow}, slowPods{client, slow}, "host", slog.New(slog.DiscardHandler), &load{})
		begin := time.Now()
		for i := range 100 {
			name := fmt.Sprint("c", i)
			r.condition(step.Condition{UID: types.UID(name), Name: name})
		}
		r.run(ctx, &wg)
		synctest.Wait() // all writers of conditions are at work
		took := map[string]time.Duration{}
		nominate := func(name, node string) {
			r.nominate(job[step.Nomination]{step.Nomination{UID: types.UID(name), Name: name, Node: node}, func(error) {
				mu.Lock()
				took[name+node] = time.Since(begin)
				mu.Unlock()
			}})
		}
		for i := range nominateWorkers {
			nominate(fmt.Sprint("n", i), "")
		}
		synctest.Wait()
		nominate("n0", " again")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(took) != nominateWorkers+1 {
			t.Fatalf("%d nominations were written in 10 s, want %d", len(took), nominateWorkers+1)
		}
		for name, d := range took {
			want := time.Second
			if name == "n0 again" {
				want = 2 * time.Second
			}
			if d != want {
				t.Errorf("the nomination of %s was written after %s, want %s", name, d, want)
			}
		}
	})
}

// slowPods is a client whose writes of a pod's status wait. A reactor of the fake can't: it is
// called under a lock.
type slowPods struct {
	kubernetes.Interface
	wait func(pod string)
}

func (c slowPods) CoreV1() corev1client.CoreV1Interface {
	return slowCore{c.Interface.CoreV1(), c.wait}
}

type slowCore struct {
	corev1client.CoreV1Interface
	wait func(pod string)
}

func (c slowCore) Pods(namespace string) corev1client.PodInterface {
	return slowPodClient{c.CoreV1Interface.Pods(namespace), c.wait}
}

type slowPodClient struct {
	corev1client.PodInterface
	wait func(pod string)
}

func (c slowPodClient) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*v1.Pod, error) {
	c.wait(name)
	return c.PodInterface.Patch(ctx, name, kind, data, o, sub...)
}
