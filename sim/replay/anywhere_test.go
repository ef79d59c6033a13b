package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/replay"
)

// atOnce makes plans at once, carries out all work, and delivers what comes of it with the next
// Step.
type atOnce struct {
	drive.Unanswered
	inbox []step.Input
}

func (w *atOnce) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) { done(compute()) }
func (w *atOnce) Bind(_ step.Bind, done func(error))                                { done(nil) }
func (w *atOnce) Preempt(_ step.Preemption, done func(error))                       { done(nil) }
func (w *atOnce) Nominate(_ step.Nomination, done func(error))                      { done(nil) }
func (w *atOnce) Taint(_ step.Taint, done func(error))                              { done(nil) }
func (w *atOnce) Evict(_ step.Eviction, done func(error))                           { done(nil) }
func (w *atOnce) ScaleUp(_ step.ScaleUp, done func(error))                          { done(nil) }

// inputFor returns the input that an informer makes of an object.
func inputFor(o metav1.Object) step.Input {
	switch o := o.(type) {
	case *v1.Pod:
		return step.PodSet{Pod: o}
	case *v1.Node:
		return step.NodeSet{Node: o, Group: "g"}
	case *appsv1.DaemonSet:
		return step.DaemonSetSet{DaemonSet: o}
	}
	if cluster.KindOf(o) != cluster.NoObject {
		return step.ObjectSet{Object: o}
	}
	return step.WorkloadSet{Workload: cluster.WorkloadOf(o.(runtime.Object))}
}

// TestPropertyHistoriesOfObjectsChangedAnywhereReplayTheSame plays short histories of a core
// that schedules and scales, in which any field of any object may have any value, and replays
// them. Whatever decides reads no field of an object that a recording, which is trimmed, lacks.
func TestPropertyHistoriesOfObjectsChangedAnywhereReplayTheSame(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "recording")
		for _, old := range []string{path, path + ".1"} {
			_ = os.Remove(old)
		}
		autoscale := core.DefaultAutoscale()
		autoscale.UnneededTime, autoscale.DelayAfterAdd = 20*time.Second, 0
		recorder, err := replay.Create(path, 1<<30, replay.Header{Kubernetes: compat.Newest.String(), Autoscale: &autoscale})
		if err != nil {
			t.Fatal(err)
		}
		var decided []step.Decision
		keep := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
			decided = append(decided, r.Decisions...)
		})
		scheduler := config.Default()
		schema, profiles := scheduler.Build()
		cfg := core.DefaultConfig(profiles...)
		cfg.Autoscale = &autoscale
		chain, err := expander.NewChain(autoscale.Expander, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &atOnce{}
		driver, err := drive.New(drive.Config{Schema: schema, Core: cfg, Expander: chain, Workers: w,
			Inbox: func(in step.Input) { w.inbox = append(w.inbox, in) }, Hooks: []drive.Hook{recorder, keep}})
		if err != nil {
			t.Fatal(err)
		}

		var all []metav1.Object
		testkit.RandomInventory(t, 3).Each(func(o metav1.Object) { all = append(all, o) })
		for _, name := range testkit.Names("pending", 3) {
			p := testkit.RandomPod(t, name)
			p.Spec.NodeName = ""
			all = append(all, p)
		}
		changed := func(o metav1.Object) metav1.Object {
			o = o.(runtime.Object).DeepCopyObject().(metav1.Object)
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				testkit.MutateAnywhere(t, o)
			}
			return o
		}
		template := changed(testkit.Node("template").Alloc("cpu", "8", "memory", "16Gi").Obj()).(*v1.Node)
		w.inbox = append(w.inbox, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 5, Target: 3, Template: template}}})
		for i := range all {
			all[i] = changed(all[i])
			w.inbox = append(w.inbox, inputFor(all[i]))
		}
		for i := range 6 {
			in := w.inbox
			w.inbox = nil
			if _, err := driver.Step(time.Unix(1000+15*int64(i), 0), in...); err != nil {
				t.Fatal(err)
			}
			at := testkit.Uniform(t, len(all), "which changes")
			all[at] = changed(all[at])
			w.inbox = append(w.inbox, inputFor(all[at]))
		}
		if err := recorder.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := replay.Play(t.Context(), path, replay.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := list(again.Decisions), list(decided); !slices.Equal(got, want) || again.Digest != again.Recorded {
			t.Fatalf("replayed:\n%s\nrecorded:\n%s", fmt.Sprint(got), fmt.Sprint(want))
		}
	})
}
