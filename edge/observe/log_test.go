package observe

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/step"
)

// TestDecisionsAreLoggedAtTheirLevel writes decisions as -v=2 and as a lower level do.
func TestDecisionsAreLoggedAtTheirLevel(t *testing.T) {
	ready := &step.Ready{Decisions: []step.Decision{
		{Seq: 7, Kind: step.Preempts, Pod: "team/web-0", Node: "n1", Reason: "why", Victims: []string{"team/a"}},
		{Seq: 8, Kind: step.ScaledUp, Group: "g"},
		{Seq: 9, Kind: step.GroupPlaced, PodGroup: "team/gang", Members: 4, Reason: "why"},
	}}
	for level, want := range map[slog.Level][]string{
		slog.LevelInfo: nil,
		levelDecision: {
			`msg=Preempts seq=7 pod.name=web-0 pod.namespace=team node.name=n1 reason=why victims=[team/a]`,
			`msg=ScaledUp seq=8 group.name=g`,
			`msg=GroupPlaced seq=9 podGroup.name=gang podGroup.namespace=team reason=why members=4`,
		},
	} {
		var out bytes.Buffer
		logDecisions(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})), ready)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if want == nil && out.Len() > 0 || want != nil && len(lines) != len(want) {
			t.Errorf("at level %d: got\n%s\nwant %q", level, &out, want)
			continue
		}
		for i, w := range want {
			if !strings.HasSuffix(lines[i], w) {
				t.Errorf("line %d: got %s, want …%s", i, lines[i], w)
			}
		}
	}
}
