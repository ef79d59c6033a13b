package replay_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/replay"
)

// This file specifies what a recording must hold, by histories that are decided otherwise
// without it.

// replays drives a core through one Step a second, records that, plays the recording and
// returns what was decided the first and the second time.
func replays(t *testing.T, steps ...[]step.Input) (first, second []step.Decision) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	recorder, err := replay.Create(path, 1<<30, replay.Header{})
	if err != nil {
		t.Fatal(err)
	}
	keep := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		first = append(first, r.Decisions...)
	})
	scheduler := config.Default()
	schema, profiles := scheduler.Build()
	driver, err := drive.New(drive.Config{
		Schema: schema, Core: core.DefaultConfig(profiles...),
		Workers: drive.Unanswered{}, Inbox: func(step.Input) {}, Hooks: []drive.Hook{recorder, keep},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range steps {
		if _, err := driver.Step(time.Unix(int64(i+1), 0), in...); err != nil {
			t.Fatal(err)
		}
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := replay.Play(t.Context(), path, replay.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return first, again.Decisions
}

// TestWhatRulesReadIsRecorded has a history for each thing that a rule reads and a
// recording has once lost: without it, the replay decides otherwise.
func TestWhatRulesReadIsRecorded(t *testing.T) {
	node := func(name string) *testkit.NodeBuilder { return testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi") }
	pod := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "1", "memory", "1Gi") }
	set := func(objects ...any) (in []step.Input) {
		for _, o := range objects {
			switch o := o.(type) {
			case *testkit.NodeBuilder:
				in = append(in, step.NodeSet{Node: o.Obj()})
			case *testkit.PodBuilder:
				in = append(in, step.PodSet{Pod: o.Obj()})
			}
		}
		return in
	}
	restarting := pod("restarting")
	restarting.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	// Among equal nodes, what the pod's rules read decides.
	var equal []any
	for i := range 32 {
		equal = append(equal, node(fmt.Sprint("equal-", i)))
	}
	token := pod("with-a-token")
	token.Spec.Volumes = []v1.Volume{{Name: "kube-api-access", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}}}

	for _, c := range []struct {
		name  string
		steps [][]step.Input
	}{
		{"a container's rules for restarts", [][]step.Input{set(node("without-the-feature")), set(restarting)}},
		{"whether it has volumes that no rule reads", [][]step.Input{set(equal...), set(token)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := replays(t, c.steps...)
			if got, want := fmt.Sprint(list(second)), fmt.Sprint(list(first)); got != want {
				t.Errorf("replayed: %s\nrecorded: %s", got, want)
			}
		})
	}
}

// list returns decisions with their nodes, to be compared.
func list(decisions []step.Decision) (out []string) {
	for i := range decisions {
		out = append(out, decisions[i].String(), decisions[i].Node)
	}
	return out
}
