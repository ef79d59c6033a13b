package extender

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// drawJSON draws any value of JSON.
func drawJSON(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 5+min(depth, 2)).Draw(t, "kind of value") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,9})?`).Draw(t, "number"))
	case 3:
		return rapid.StringMatching(`[0-9]{1,9}[eEm.Ki]{0,3}[0-9]{0,9}`).Draw(t, "amount")
	case 4, 5:
		return rapid.String().Draw(t, "text")
	case 6:
		var list []any
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			list = append(list, drawJSON(t, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"cpu", "allocatable", "taints", "x"}), 0, 3).Draw(t, "keys") {
			object[key] = drawJSON(t, depth-1)
		}
		return object
	}
}

// TestPropertyOfNodesInAnAnswerTheNamesCount has an extender send nodes back that have anything beside
// their names: those are allowed that it names, in its order.
func TestPropertyOfNodesInAnAnswerTheNamesCount(t *testing.T) {
	w := newWorld(t, &kubeschedulerv1.Extender{URLPrefix: "http://x", FilterVerb: "f"}, "")
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"n0", "n1", "n2", "n3", "n4"}
		names = rapid.Permutation(names).Draw(t, "names")[:rapid.IntRange(0, len(names)).Draw(t, "allowed")]
		items := []any{}
		for _, name := range names {
			metadata, node := map[string]any{"name": name}, map[string]any{}
			for _, key := range []string{"labels", "annotations", "uid", "creationTimestamp"} {
				if rapid.Bool().Draw(t, key) {
					metadata[key] = drawJSON(t, 2)
				}
			}
			for _, key := range []string{"spec", "status", "kind"} {
				if rapid.Bool().Draw(t, key) {
					node[key] = drawJSON(t, 3)
				}
			}
			node["metadata"] = metadata
			items = append(items, node)
		}
		answer, err := json.Marshal(map[string]any{"nodes": map[string]any{"items": items}})
		if err != nil {
			t.Fatal(err)
		}
		w.said.answer = string(answer)
		allowed, failed, err := w.chain.extenders[0].Filter(t.Context(), asked(false), w.nodes)
		var got []string
		for _, n := range allowed {
			got = append(got, n.Name)
		}
		if err != nil || !slices.Equal(got, names) || len(failed) > 0 {
			t.Fatalf("nodes %v are allowed (%v), want %v, of %s", got, err, names, answer)
		}
	})
}
