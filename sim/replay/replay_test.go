package replay_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/replay"
	"github.com/berthproject/berth/sim/scenario"
	"github.com/berthproject/berth/sim/soak"
)

// This file specifies recording and replay as a whole, with random worlds.

// record plays a random world and records it as the live edge would. The recording ends
// early when the limit, in bytes, is small.
func record(t *testing.T, seed uint64, limit int64) (path string, run *scenario.Run) {
	return recordUnder(t, seed, limit, scenario.Policy{}, nil)
}

// TestReplayPlacesPodGroupsTheSame records random worlds with pod groups, and replays them: groups are decided on
// as one, with the same members on the same nodes, and wait for the same reasons.
func TestReplayPlacesPodGroupsTheSame(t *testing.T) {
	kinds := map[step.DecisionKind]int{}
	for seed := range uint64(12) {
		for _, world := range []func(uint64) *scenario.Scenario{soak.GeneratePodGroups, soak.GenerateGangs} {
			path, _ := recordWorld(t, world(seed), 1<<30, nil)
			r, err := replay.Play(t.Context(), path, replay.Policy{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if r.Digest != r.Recorded {
				t.Errorf("seed %d: %d decisions, digest %s, recorded %s", seed, len(r.Decisions), r.Digest, r.Recorded)
			}
			for i := range r.Decisions {
				kinds[r.Decisions[i].Kind]++
			}
		}
	}
	if kinds[step.GroupPlaced] < 50 || kinds[step.GroupWaits] < 20 {
		t.Errorf("groups were placed %d times and waited %d times; want 50 and 20 at least", kinds[step.GroupPlaced], kinds[step.GroupWaits])
	}
}

// recordUnder is record under what a policy has beside the world's own, and with a bound on
// plans.
func recordUnder(t *testing.T, seed uint64, limit int64, policy scenario.Policy, watch autoscaler.Stopwatch) (path string, run *scenario.Run) {
	s := soak.Generate(seed)
	s.Spec.Policy.Flags = append(s.Spec.Policy.Flags, policy.Flags...)
	s.Spec.Policy.ExpanderPriorities, s.Spec.Policy.EmulatedVersion = policy.ExpanderPriorities, policy.EmulatedVersion
	return recordWorld(t, s, limit, watch)
}

// recordWorld is record of a world, with a bound on plans.
func recordWorld(t *testing.T, s *scenario.Scenario, limit int64, watch autoscaler.Stopwatch) (path string, run *scenario.Run) {
	s.Spec.Faults = slices.DeleteFunc(s.Spec.Faults, func(f scenario.Fault) bool { return f.Kind == scenario.CrashBerth }) // a crash ends a recording
	run, err := scenario.Parse("world.yaml", soak.Text(s))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "recording")
	r, err := replay.Create(path, limit, replay.Header{Seed: run.Spec.Seed, Kubernetes: run.Scheduler.Version.String(), Autoscale: &run.Autoscale})
	if err != nil {
		t.Fatal(err)
	}
	var ended []error
	r.Ended = func(err error) { ended = append(ended, err) }
	w, err := sim.New(run, sim.Options{Hooks: []drive.Hook{r}, Stopwatch: watch})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if full := limit < 1<<20; full != (len(ended) == 1) || len(ended) > 1 || full && !strings.Contains(ended[0].Error(), "size limit") {
		t.Errorf("with a limit of %d bytes, recording ended with %v before Close", limit, ended)
	}
	if limit > 1<<20 && r.Digest() != sum.Digest {
		t.Errorf("recorded digest %s, the world's is %s", r.Digest(), sum.Digest)
	}
	return path, run
}

// TestReplayDecidesTheSame records random worlds with every kind of input and
// replays them.
func TestReplayDecidesTheSame(t *testing.T) {
	decisions := 0
	for seed := range uint64(40) {
		path, _ := record(t, seed, 1<<30)
		r, err := replay.Play(t.Context(), path, replay.Policy{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		decisions += len(r.Decisions)
		if r.Digest != r.Recorded {
			t.Errorf("seed %d: %d decisions, digest %s, recorded %s", seed, len(r.Decisions), r.Digest, r.Recorded)
		}
	}
	if decisions < 1000 {
		t.Errorf("only %d decisions were replayed", decisions)
	}
}

// TestReplayOfDevices records worlds in which pods claim devices, nodes are bought for them, drivers change what they
// publish and claims are edited, and replays them.
func TestReplayOfDevices(t *testing.T) {
	bound, bought := 0, 0
	for seed := range uint64(12) {
		for _, world := range []*scenario.Scenario{soak.GenerateDevices(seed), soak.GenerateBoughtDevices(seed)} {
			path, _ := recordWorld(t, world, 1<<30, nil)
			r, err := replay.Play(t.Context(), path, replay.Policy{})
			if err != nil {
				t.Fatalf("%s: %v", world.Metadata.Name, err)
			}
			if r.Digest != r.Recorded {
				t.Errorf("%s: %d decisions, digest %s, recorded %s", world.Metadata.Name, len(r.Decisions), r.Digest, r.Recorded)
			}
			for i := range r.Decisions {
				switch r.Decisions[i].Kind {
				case step.Placed:
					bound++
				case step.ScaledUp:
					bought++
				}
			}
		}
	}
	if bound < 200 || bought < 20 {
		t.Errorf("%d pods were placed and %d orders made: too few to show much", bound, bought)
	}
}

// TestReplayKnowsWhatExpandersAnswered records random worlds under priorities of node
// groups that the recording doesn't have: the replay chooses the same groups.
func TestReplayKnowsWhatExpandersAnswered(t *testing.T) {
	worlds := 0 // in which a group was chosen for its priority
	for seed := range uint64(15) {
		path, _ := recordUnder(t, seed, 1<<30, scenario.Policy{Flags: []string{"--expander=priority"}, ExpanderPriorities: "3: [g2]\n2: [g1]\n1: [g0]"}, nil)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), `{"answers":[["g1"]`) && !strings.Contains(string(raw), `{"answers":[["g2"]`) {
			continue
		}
		worlds++
		r, err := replay.Play(t.Context(), path, replay.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest != r.Recorded {
			t.Errorf("seed %d: digest %s, recorded %s", seed, r.Digest, r.Recorded)
		}
	}
	if worlds < 3 {
		t.Errorf("in %d worlds only is a group chosen for its priority", worlds)
	}
}

// moody is a stopwatch that answers every third question with yes.
type moody struct{ asked int }

func (m *moody) Start(autoscaler.Span) {}

func (m *moody) Over(autoscaler.Span) bool {
	m.asked++
	return m.asked%3 == 0
}

// TestReplayCutsPlansWhereTheyWereCut records random worlds whose plans take too long now and
// then: the replay, which has no clock, makes the same plans.
func TestReplayCutsPlansWhereTheyWereCut(t *testing.T) {
	cut := 0 // plans
	for seed := range uint64(15) {
		path, _ := recordUnder(t, seed, 1<<30, scenario.Policy{}, &moody{})
		r, err := replay.Play(t.Context(), path, replay.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest != r.Recorded {
			t.Errorf("seed %d: digest %s, recorded %s", seed, r.Digest, r.Recorded)
		}
		for i := range r.Decisions {
			if r.Decisions[i].Kind == step.PlanCut {
				cut++
			}
		}
	}
	if cut < 5 {
		t.Errorf("only %d plans were cut short", cut)
	}
}

func TestAnotherPolicyDecidesOtherwise(t *testing.T) {
	path, _ := record(t, 1, 1<<30)
	plain, err := replay.Play(t.Context(), path, replay.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	tight, err := config.ParseAutoscaler([]string{"--max-nodes-total=1"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := replay.Play(t.Context(), path, replay.Policy{Autoscale: &tight})
	if err != nil {
		t.Fatal(err)
	}
	diff := replay.Diff(plain.Decisions, other.Decisions)
	if len(diff) == 0 {
		t.Fatal("one node for the whole cluster makes no difference")
	}
	for _, d := range diff {
		if strings.HasPrefix(d.What, "group ") && d.Now != "nothing" && d.Now >= d.Recorded {
			t.Errorf("%s: recorded %s, now %s", d.What, d.Recorded, d.Now)
		}
	}
	if same := replay.Diff(plain.Decisions, plain.Decisions); len(same) > 0 {
		t.Errorf("a recording differs from itself: %v", same)
	}
}

func TestRecordingsAreBoundedAndKept(t *testing.T) {
	path, _ := record(t, 3, 20_000)
	r, err := replay.Play(t.Context(), path, replay.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Note, "size limit") || r.Digest != r.Recorded {
		t.Errorf("note %q, digest %s, recorded %s", r.Note, r.Digest, r.Recorded)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 200_000 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	for range replay.Kept + 3 {
		r, err := replay.Create(path, 1000, replay.Header{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(path + "*")
	if len(files) != replay.Kept+1 {
		t.Errorf("%d files are kept: %v", len(files), files)
	}
}

func TestBadRecordingsAreRefusedByLine(t *testing.T) {
	good, _ := record(t, 4, 1<<30)
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	play := func(text string) (*replay.Result, error) {
		path := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return replay.Play(t.Context(), path, replay.Policy{})
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ":1: this is not a recording"},
		{"other file", "{}\n", ":1: this is not a recording"},
		{"version", `{"berthRecording":99}` + "\n", ":1: berthRecording is 99; this version of Berth reads 1"},
		{"garbage", `{"berthRecording":1}` + "\nxyz\n", ":2: this line can't be parsed"},
		{"unknown", `{"berthRecording":1}` + "\n" + `{"t":1,"in":[{"k":"Teapot"}]}` + "\n", `:2: in[0] (Teapot): unknown input "Teapot"`},
		{"no object", `{"berthRecording":1}` + "\n" + `{"t":1,"in":[{"k":"NodeSet","v":{"Group":"g"}}]}` + "\n", `:2: in[0] (NodeSet): node: the object is missing`},
		{"a null object", `{"berthRecording":1}` + "\n" + `{"t":1,"in":[{"k":"DaemonSetSet","v":null}]}` + "\n", `:2: in[0] (DaemonSetSet): DaemonSet: the object is missing`},
		{"time", `{"berthRecording":1}` + "\n" + `{"t":2}` + "\n" + `{"t":1}` + "\n", `:3: t is 1, which is before that of the Step before, 2`},
		{"config", `{"berthRecording":1,"schedulerConfig":"kind: X"}` + "\n", ":1: schedulerConfig: "},
	} {
		if _, err := play(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", c.name, err, c.want)
		}
	}
	r, err := play(string(raw[:len(raw)*2/3]))
	if err != nil || r.Steps == 0 || !strings.Contains(r.Note, "was cut off here") || r.Recorded != "" {
		t.Errorf("a recording that was cut off: %+v, %v", r, err)
	}
	if _, err := replay.Play(t.Context(), "/nope", replay.Policy{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing file: %v", err)
	}
}
