package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

func TestTaintsAreReplacedByKey(t *testing.T) {
	taint := func(key, value string) v1.Taint {
		return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffectNoSchedule}
	}
	for _, c := range []struct {
		name string
		step.Taint
		want string // value of the key, "none" without it
	}{
		{"put on", step.Taint{Taint: taint("new", "1")}, "[other=x old=1 new=1]"},
		{"put on again", step.Taint{Taint: taint("old", "2")}, "[other=x old=2]"},
		{"taken off", step.Taint{Taint: taint("old", ""), Remove: true}, "[other=x]"},
		{"taken off, though it isn't there", step.Taint{Taint: taint("new", ""), Remove: true}, "[other=x old=1]"},
		{"put on this node", step.Taint{UID: "this", Taint: taint("new", "1")}, "[other=x old=1 new=1]"},
		{"taken off an earlier node of the name", step.Taint{UID: "earlier", Taint: taint("old", ""), Remove: true}, "[other=x old=1]"},
	} {
		node := testkit.Node("n").Obj()
		node.UID = "this"
		node.Spec.Taints = []v1.Taint{taint("other", "x"), taint("old", "1")}
		client := fake.NewClientset(node)
		c.Node = "n"
		if err := newTainter(client).write(t.Context(), c.Taint); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var taints []string
		for _, x := range got.Spec.Taints {
			taints = append(taints, x.Key+"="+x.Value)
		}
		if fmt.Sprint(taints) != c.want {
			t.Errorf("%s: got %v, want %s", c.name, taints, c.want)
		}
	}
}

// TestANodeThatHasAnothersNameIsNotTainted has a node be deleted and created again while its taint
// is to be written.
func TestANodeThatHasAnothersNameIsNotTainted(t *testing.T) {
	node := testkit.Node("n").Obj()
	node.UID = "this"
	client := fake.NewClientset(node)
	err := newTainter(client).write(t.Context(), step.Taint{Node: "n", UID: "earlier", Taint: v1.Taint{Key: autoscaler.ToBeDeletedTaint, Effect: v1.TaintEffectNoSchedule}})
	got, _ := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || len(got.Spec.Taints) > 0 {
		t.Errorf("got %v and taints %v, want it not to be found", err, got.Spec.Taints)
	}
}

// TestANodeIsCordonedAndNotedWithItsTaint: all in one write, and taken back in one.
func TestANodeIsCordonedAndNotedWithItsTaint(t *testing.T) {
	client := fake.NewClientset(testkit.Node("n").Obj())
	removal := v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: "1", Effect: v1.TaintEffectNoSchedule}
	for i, want := range []bool{true, false} {
		x := step.Taint{Node: "n", Taint: removal, Cordon: true, Note: "why", Remove: !want}
		if err := newTainter(client).write(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		n, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, noted := n.Annotations[autoscaler.RemovalNote]
		if got := len(n.Spec.Taints) == 1; got != want || n.Spec.Unschedulable != want || noted != want {
			t.Errorf("the node is tainted %v, unschedulable %v, noted %v; want %v", got, n.Spec.Unschedulable, noted, want)
		}
		updates := 0
		for _, a := range client.Actions() {
			if a.GetVerb() == "patch" {
				updates++
			}
		}
		if updates != i+1 {
			t.Errorf("%d writes, want %d", updates, i+1)
		}
	}
}

// TestAWriteOfTaintsLeavesTheRestAlone: what it has is the taints, the cordon and the note that
// change, and the version that they are of. Fields that these types don't have stay.
func TestAWriteOfTaintsLeavesTheRestAlone(t *testing.T) {
	node := testkit.Node("n").Label("a", "b").Alloc("cpu", "4").Obj()
	node.UID, node.ResourceVersion = "this", "7"
	node.Annotations = map[string]string{"other": "x"}
	node.Spec.PodCIDR = "10.0.0.0/24"
	client := fake.NewClientset(node)
	soft := step.Taint{Node: "n", Taint: v1.Taint{Key: "k", Value: "1", Effect: v1.TaintEffectPreferNoSchedule}}
	removal := step.Taint{Node: "n", Taint: v1.Taint{Key: "k", Value: "2", Effect: v1.TaintEffectNoSchedule}, Cordon: true, Note: "why"}
	back := removal
	back.Remove = true
	for _, x := range []struct {
		taint step.Taint
		want  string
	}{
		{soft, `{"metadata":{"resourceVersion":"7","uid":"this"},"spec":{"taints":[{"key":"k","value":"1","effect":"PreferNoSchedule"}]}}`},
		{removal, `{"metadata":{"annotations":{"` + autoscaler.RemovalNote + `":"cordoned; why"},"resourceVersion":"7","uid":"this"},"spec":{"taints":[{"key":"k","value":"2","effect":"NoSchedule"}],"unschedulable":true}}`},
		{back, `{"metadata":{"annotations":{"` + autoscaler.RemovalNote + `":null},"resourceVersion":"7","uid":"this"},"spec":{"taints":[],"unschedulable":null}}`},
	} {
		client.ClearActions()
		if err := newTainter(client).write(t.Context(), x.taint); err != nil {
			t.Fatal(err)
		}
		for _, a := range client.Actions() {
			if p, ok := a.(clienttesting.PatchAction); ok && string(p.GetPatch()) != x.want {
				t.Errorf("the patch is\n%s\nwant\n%s", p.GetPatch(), x.want)
			} else if !ok && a.GetVerb() != "get" {
				t.Errorf("a call of %s", a.GetVerb())
			}
		}
	}
}

// TestTaintsOfOneNodeKeepTheirOrder writes the taints of many nodes, of each several in turn,
// while the write of one node hangs: the others get theirs, and each node ends with its last.
func TestTaintsOfOneNodeKeepTheirOrder(t *testing.T) {
	client := fake.NewClientset()
	w := &workers{ctx: t.Context(), tainter: newTainter(client)}
	hangs, release := "n0", make(chan struct{})
	client.PrependReactor("get", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, testkit.Node(a.(clienttesting.GetAction).GetName()).Obj(), nil
	})
	var mu sync.Mutex
	last := map[string]string{}
	client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, node := a.(clienttesting.PatchAction), &v1.Node{}
		if err := json.Unmarshal(patch.GetPatch(), node); err != nil {
			return true, nil, err
		}
		mu.Lock()
		last[patch.GetName()] += node.Spec.Taints[0].Value
		mu.Unlock()
		return true, node, nil
	})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	w.tainter.run(ctx, &wg)
	defer wg.Wait()
	defer stop()
	others, all := make(chan struct{}, 100), make(chan struct{}, 100)
	for _, value := range []string{"a", "b", "c"} {
		for i := range 20 {
			name := fmt.Sprint("n", i)
			w.Taint(step.Taint{Node: name, Taint: v1.Taint{Key: "k", Value: value}}, func(error) {
				if name == hangs {
					<-release // its worker is held up
				}
				if w.tainter.backlogOf(name) != w.tainter.backlogOf(hangs) {
					others <- struct{}{}
				}
				all <- struct{}{}
			})
		}
	}
	free := 0
	for i := range 20 {
		if w.tainter.backlogOf(fmt.Sprint("n", i)) != w.tainter.backlogOf(hangs) {
			free++
		}
	}
	for range 3 * free {
		<-others
	}
	close(release)
	for range 60 {
		<-all
	}
	for i := range 20 {
		if got := last[fmt.Sprint("n", i)]; got != "abc" {
			t.Errorf("node n%d was written %q, want abc", i, got)
		}
	}
}

func TestTaintOutcomes(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	conflict, unavailable, never := apierrors.NewConflict(nodes, "n", errors.New("changed")), apierrors.NewServiceUnavailable("restarting"), apierrors.NewForbidden(nodes, "n", nil)
	for _, c := range []struct {
		name    string
		exists  bool
		remove  bool
		answers []error // to updates in turn; then success
		fails   bool
		updates int
	}{
		{"somebody else was faster", true, false, []error{conflict}, false, 2},
		{"a failure that passes", true, false, []error{unavailable}, false, 2},
		{"forbidden", true, false, []error{never}, true, 1},
		{"the node no longer exists", false, false, nil, true, 0},
		{"the node no longer exists, and its taint with it", false, true, nil, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			if c.exists {
				client = fake.NewClientset(testkit.Node("n").Obj())
			}
			updates := 0
			client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				updates++
				if updates <= len(c.answers) {
					return true, nil, c.answers[updates-1]
				}
				return false, nil, nil
			})
			err := newTainter(client).write(t.Context(), step.Taint{Node: "n", Taint: v1.Taint{Key: "k"}, Remove: c.remove})
			if (err != nil) != c.fails || updates != c.updates {
				t.Errorf("got %v after %d updates, want failure %v after %d", err, updates, c.fails, c.updates)
			}
		})
	}
}
