package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// TestRoomOfAPodGroup asks for a group for which room is kept, once it is.
func TestRoomOfAPodGroup(t *testing.T) {
	const overtaken = "../../examples/pod-groups/overtaken.yaml"
	runs, err := scenario.Load([]string{overtaken})
	if err != nil {
		t.Fatal(err)
	}
	var w *sim.World
	var got v1alpha1.PodGroupDetail
	kept := drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for _, d := range r.Decisions {
			if d.Kind == step.RoomKept && got.Name == "" {
				ask := func(_ context.Context, question func(*core.Core)) bool { question(w.Core()); return true }
				code, body := get(api.New(api.Options{Ask: ask, Ledger: observe.NewHistory(1), Now: func() time.Time { return now }, Meta: func() v1alpha1.Meta { return v1alpha1.Meta{Mode: v1alpha1.ModeLive, Leading: true} }}), "podgroups/"+d.PodGroup)
				if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
					t.Errorf("%d %s: %v", code, body, err)
				}
			}
		}
	})
	if w, err = sim.New(runs[0], sim.Options{Hooks: []drive.Hook{kept}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := got.Room; r == nil || r.Members != 4 || r.AllNodes != 4 || len(r.Nodes) != 4 || !r.Until.After(r.Since) || !r.Ends.After(r.Until) || got.RoomMissing != "" {
		t.Errorf("the room is %+v, missing %q", r, got.RoomMissing)
	}
}

// TestMistypedNamesAreSuggested for nodes, node groups and pods.
func TestMistypedNamesAreSuggested(t *testing.T) {
	a := api.New(newExample(t).options())
	for path, want := range map[string]string{
		"nodes/db-001":             "node db-001 not found; similar names are db-0001",
		"groups/spott":             "node group spott not found; similar names are spot",
		"pods/default/web-0002":    "similar names there are web-00002",
		"podgroups/default/none":   "pod group default/none not found",
		"podgroups/none":           "give the pod group as podgroups/NAMESPACE/NAME",
		"podgroups/default/none/x": "give the pod group as podgroups/NAMESPACE/NAME",
	} {
		if code, body := get(a, path); code == http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s\nwant …%s…", path, code, body, want)
		}
	}
}
