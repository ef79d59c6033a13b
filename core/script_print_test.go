package core_test

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit/script"
	"github.com/berthproject/berth/sim/report"
)

// print is a drive.Hook: it writes the work of a Step.
func (w *world) print(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	out := &w.out
	for _, b := range r.Binds {
		fmt.Fprintf(out, "bind %s to %s\n", b.Name, b.Node)
	}
	for _, x := range r.Cancels {
		fmt.Fprintf(out, "take back the bind of %s\n", strings.TrimPrefix(string(x.UID), "pod-"))
	}
	for _, x := range r.Preemptions {
		fmt.Fprintf(out, "tell %s on %s to go for %s\n", x.Name, x.Node, strings.TrimPrefix(string(x.By), "pod-"))
	}
	for _, x := range r.Nominations {
		if x.Node == "" {
			fmt.Fprintf(out, "nominate %s to none\n", x.Name)
		} else {
			fmt.Fprintf(out, "nominate %s to %s\n", x.Name, x.Node)
		}
	}
	for _, t := range r.Taints {
		verb := "taint"
		if t.Remove {
			verb = "untaint"
		}
		fmt.Fprintf(out, "%s %s %s=%s:%s\n", verb, t.Node, t.Taint.Key, t.Taint.Value, t.Taint.Effect)
	}
	for _, s := range r.Surges {
		fmt.Fprintf(out, "surge %s for a pod on %s\n", s.Deployment, s.Node)
	}
	for _, e := range r.Evictions {
		fmt.Fprintf(out, "evict %s from %s\n", e.Name, e.Node)
	}
	for _, s := range r.ScaleUps {
		fmt.Fprintf(out, "scale up %s by %d\n", s.Group, s.Nodes)
	}
	for _, d := range r.NodeDeletions {
		fmt.Fprintf(out, "delete node %s of %s\n", d.Node, d.Group)
	}
	for _, d := range r.TargetDecreases {
		fmt.Fprintf(out, "lower the target of %s by %d\n", d.Group, d.Nodes)
	}
	w.printHeadroom(r)
	for i := range r.Decisions {
		if d := &r.Decisions[i]; d.Weighed != nil {
			fmt.Fprintf(out, "%s %s\n", strings.TrimPrefix(d.Pod+d.PodGroup, "default/"), d.Weighed)
		}
	}
	for _, c := range r.Conditions {
		fmt.Fprintf(out, "condition %s %s: %s\n", c.Name, c.Reason, c.Message)
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.AboutStatus() {
			continue // they say what the lines above say; the scripts of nodegroups and nodedeletion have them
		}
		fmt.Fprintf(out, "event %s %s: %s\n", e.Name, e.Reason, e.Message)
	}
}

// question returns what people are answered who ask by a command; asked is false for any other.
func (w *world) question(cmd string, args *script.Args) (answer string, asked bool) {
	view, when := w.Core().View(), w.now.UTC().Format(time.DateTime)
	switch cmd {
	case "explain":
		x, ok := view.Explain("default", args.Name())
		w.addUp(x.Candidates)
		answer = w.answer(args, x, ok, func(out io.Writer) error { return report.Explanation(out, &x, when) })
	case "explain-podgroup":
		x, ok := view.ExplainPodGroup("default", args.Name())
		answer = w.answer(args, x, ok, func(out io.Writer) error { return report.PodGroup(out, &x, when) })
	case "explain-group":
		x, ok := view.ExplainGroup(args.Name())
		answer = w.answer(args, x, ok, func(out io.Writer) error { return report.Group(out, &x, when) })
	case "explain-node":
		x, ok := view.ExplainNode(args.Name())
		answer = w.answer(args, x, ok, func(out io.Writer) error { return report.Node(out, &x, when) })
	case "explain-nodes":
		x, ok := view.ExplainNodes()
		answer = w.answer(args, x, ok, func(out io.Writer) error { return report.Nodes(out, &x, when) })
	default:
		return "", false
	}
	args.Done()
	return answer, true
}

// answer returns an explanation as the text that berth explain prints, or as JSON. The spaces that
// end lines of tables are left out.
func (w *world) answer(args *script.Args, x any, known bool, text func(io.Writer) error) string {
	var out strings.Builder
	asJSON := args.Flag("json")
	if !known {
		return "unknown\n"
	}
	err := error(nil)
	if asJSON {
		enc := json.NewEncoder(&out)
		enc.SetIndent("", "  ")
		err = enc.Encode(x)
	} else {
		err = text(&out)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return spacesAtEnd.ReplaceAllString(out.String(), "")
}

var spacesAtEnd = regexp.MustCompile(`(?m) +$`)

// addUp checks that the parts of each candidate's score make it up, and leaves them out.
func (w *world) addUp(candidates []explain.Candidate) {
	for i := range candidates {
		k := &candidates[i]
		sum := int64(0)
		for _, s := range k.Scores {
			sum += s.Score
		}
		if sum != k.Score {
			w.t.Errorf("the score of %s is %d, and its parts make up %d", k.Node, k.Score, sum)
		}
		k.Scores = nil
	}
}
