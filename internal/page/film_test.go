package page

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/replay"
	"github.com/berthproject/berth/sim/scenario"
)

// example is a cluster in which much is going on.
var example = filepath.Join("..", "..", "edge", "api", "testdata", "cluster.yaml")

// record plays the example and returns a recording of it.
func record(t *testing.T) string {
	t.Helper()
	runs, err := scenario.Load([]string{example})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	recorder, err := replay.Create(path, 1<<24, replay.Header{Seed: runs[0].Spec.Seed, Kubernetes: runs[0].Scheduler.Version.String(), Autoscale: &runs[0].Autoscale})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(runs[0], sim.Options{Hooks: []drive.Hook{recorder}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// asOf returns an answer without when it was made.
func asOf(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: got %d %s", path, w.Code, w.Body)
	}
	return regexp.MustCompile(`"at":"[^"]*"`).ReplaceAllString(w.Body.String(), "")
}

// TestARunIsShownAtAnyOfItsTimes, in whatever order they are asked for: what is answered is what a run that was
// played up to that time and no further answers.
func TestARunIsShownAtAnyOfItsTimes(t *testing.T) {
	for name, path := range map[string]string{kindScenario: example, kindRecording: record(t)} {
		t.Run(name, func(t *testing.T) {
			h, err := Offline(t.Context(), path, nil, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			f := h.(*film)
			for _, after := range []time.Duration{7 * time.Minute, time.Minute, 8 * time.Minute, 0, 5*time.Minute + 1, 7 * time.Minute, time.Minute, 5 * time.Minute} {
				at := f.meta.From.Add(after)
				fresh, err := f.begin()
				if err != nil {
					t.Fatal(err)
				}
				if err := fresh.play(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				fresh.at = at
				want := f.answersOf(fresh)
				for _, ask := range []string{"overview", "nodes", "pods", "pending", "groups", "decisions?limit=1000", "money"} {
					query := "?"
					if strings.Contains(ask, "?") {
						query = "&"
					}
					if got, want := asOf(t, h, ask+query+"at="+url.QueryEscape(at.Format(time.RFC3339Nano))), asOf(t, want, ask); got != want {
						t.Errorf("%s after %s:\n%.1000s\nwant\n%.1000s", ask, after, got, want)
					}
				}
				// What both play too far is the same: by the clock nothing is from later than what is asked for.
				for _, d := range get[v1alpha1.DecisionList](t, h, "decisions?limit=1000&at="+url.QueryEscape(at.Format(time.RFC3339Nano))).Items {
					if d.Time.After(at) {
						t.Errorf("after %s there is a decision of %s later", after, d.Time.Sub(at))
						break
					}
				}
				if len(f.reels) > maxReels {
					t.Fatalf("%d reels are kept", len(f.reels))
				}
			}
			end := get[v1alpha1.Overview](t, h, "overview")
			if last := get[v1alpha1.Overview](t, h, "overview?at="+f.meta.Now.Format(time.RFC3339Nano)); end.Seq == 0 || last.Seq != end.Seq {
				t.Errorf("at the end there are %d decisions, and without a time %d", last.Seq, end.Seq)
			}
		})
	}
}

// TestTimesThatARunHasNot are refused by a message with what it has.
func TestTimesThatARunHasNot(t *testing.T) {
	h, err := Offline(t.Context(), example, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"at=yesterday":                      `at is \"yesterday\"; it must be one time such as 2026-01-31T12:00:00Z`,
		"at=":                               "it must be one time",
		"at=2025-12-31T23:59:59Z":           "it must be a time of the run, which is from 2026-01-01T00:00:00Z to 2026-01-01T00:08:16.54Z",
		"at=2026-01-01T00:08:21Z":           "it must be a time of the run",
		"at=2026-01-01T00:01:00Z&at=0":      "it must be one time",
		"at=" + strings.Repeat("9", 10_000): "it must be one time",
		"at=2026-01-01T00:01:00Z&at=%zz":    "the query can't be read",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"overview?"+query, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) || w.Body.Len() > 400 {
			t.Errorf("%.60s: got %d %.300s, want …%s…", query, w.Code, w.Body, want)
		}
	}
}

// TestWhoeverLeavesStopsTheFilm: the rest of a long way isn't played for nobody, and what comes next is right.
func TestWhoeverLeavesStopsTheFilm(t *testing.T) {
	h, err := Offline(t.Context(), example, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	f := h.(*film)
	ctx, leave := context.WithCancel(t.Context())
	played := 0
	begin := f.begin
	f.begin = func() (*reel, error) {
		r, err := begin()
		play := r.play
		r.play = func(ctx context.Context, until time.Time) error {
			if played++; played == 3 {
				leave()
			}
			return play(ctx, until)
		}
		return r, err
	}
	at := "?at=2026-01-01T00:07:40Z"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, api.Prefix+"overview"+at, nil))
	if played != 3 || w.Body.Len() > 0 {
		t.Errorf("%d parts were played for a viewer who had left after 3, who was sent %q", played, w.Body)
	}
	after := asOf(t, h, "overview"+at)
	if other, err := Offline(t.Context(), example, nil, io.Discard); err != nil || asOf(t, other, "overview"+at) != after {
		t.Errorf("the next viewer sees %s (%v)", after, err)
	}
}

// TestRunsBesideEachOther: what came of each file is there, the one that is shown first.
func TestRunsBesideEachOther(t *testing.T) {
	recording := record(t)
	h, err := Offline(t.Context(), example, []string{recording}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	list := get[v1alpha1.OutcomeList](t, h, "outcomes").Items
	if len(list) != 2 || list[0].Name != "example" || list[1].Name != "recording.jsonl" {
		t.Fatalf("got %d runs", len(list))
	}
	for _, o := range list {
		if len(o.Times) < 5 || !slices.IsSorted(o.Times) || len(o.Lines) < 10 || o.Until.Sub(o.From) < 8*time.Minute {
			t.Errorf("%s: %d times, %d lines, from %s to %s", o.Name, len(o.Times), len(o.Lines), o.From, o.Until)
		}
		for _, l := range o.Lines {
			if len(l.Values) != len(o.Times) {
				t.Errorf("%s: %s has %d values at %d times", o.Name, l.Name, len(l.Values), len(o.Times))
			}
		}
		if n := slices.IndexFunc(o.Lanes, func(l v1alpha1.Lane) bool { return l.Kind == "Placed" }); n < 0 || o.Lanes[n].Count != 16 {
			t.Errorf("%s: the lanes are %+v", o.Name, o.Lanes)
		}
	}
	if list[0].Lanes[0].Count != list[1].Lanes[0].Count || len(list[0].Facts) == 0 || len(list[0].Rows) < 18 {
		t.Errorf("a recording of the run has other decisions, or figures are missing: %+v", list[0].Rows)
	}
	for _, x := range []struct{ file, beside, want string }{
		{example, filepath.Join(t.TempDir(), "none"), "--compare: open "},
		{example, t.TempDir(), "--compare: "},
	} {
		if _, err := Offline(t.Context(), x.file, []string{x.beside}, io.Discard); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want …%s…", x.beside, err, x.want)
		}
	}
}

// TestLanesCountAllDecisions however long a run is.
func TestLanesCountAllDecisions(t *testing.T) {
	l := newLanes()
	for i := range 100_000 {
		l.add("Placed", float64(i))
	}
	l.add("Waits", 99_999)
	all := l.all()
	sum := 0
	for _, n := range all[0].Counts {
		sum += n
	}
	if sum != 100_000 || all[0].Count != sum || len(all[0].At) > maxLane || all[0].Counts[0] != int(all[0].Step) || all[0].Counts[1] != int(all[0].Step) {
		t.Errorf("%d of 100,000 decisions in %d parts of %v s: %v", sum, len(all[0].At), all[0].Step, all[0].Counts[:3])
	}
	if len(all) != 2 || all[1].Count != 1 || !slices.IsSorted(all[0].At) {
		t.Errorf("got %+v", all[1:])
	}
}
