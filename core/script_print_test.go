package core_test

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit/script"
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
			fmt.Fprintf(out, "%s %s\n", strings.TrimPrefix(d.Pod, "default/"), d.Weighed)
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

// explain returns the explanation of a pod as YAML. How a candidate's score is made up is
// left out, once it is seen to add up.
func (w *world) explain(name string) string {
	x, ok := w.Core().View().Explain("default", name)
	if !ok {
		return "unknown\n"
	}
	for _, at := range []*time.Time{x.Queued, x.Tried, x.Backoff} {
		if at != nil {
			*at = at.UTC()
		}
	}
	for i := range x.Candidates {
		k := &x.Candidates[i]
		sum := int64(0)
		for _, s := range k.Scores {
			sum += s.Score
		}
		if sum != k.Score {
			w.t.Errorf("the score of %s is %d, and its parts make up %d", k.Node, k.Score, sum)
		}
		k.Scores = nil
	}
	text, err := yaml.Marshal(&x)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "  scores: null\n", "")
}

// question returns what people are answered who ask by a command; asked is false for any other.
func (w *world) question(cmd string, args *script.Args) (answer string, asked bool) {
	switch cmd {
	case "explain":
		answer = w.explain(args.Name())
	case "explain-group":
		answer = w.asYAML(explained(w.Core().View().ExplainGroup(args.Name())))
	case "explain-node":
		answer = w.asYAML(explained(w.Core().View().ExplainNode(args.Name())))
	case "explain-nodes":
		answer = w.asYAML(explained(w.Core().View().ExplainNodes()))
	default:
		return "", false
	}
	args.Done()
	return answer, true
}

// explained returns an explanation to be printed; nil when there is none.
func explained[X any](x X, ok bool) any {
	if !ok {
		return nil
	}
	return &x
}

func (w *world) asYAML(x any) string {
	if x == nil {
		return "unknown\n"
	}
	text, err := yaml.Marshal(x)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
