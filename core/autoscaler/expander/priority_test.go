package expander_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/autoscaler/expander"
)

func mustParse(t *testing.T, text string) *expander.Priorities {
	t.Helper()
	p, err := expander.ParsePriorities(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPriorityKeepsTheGroupsOfTheHighest has priorities narrow groups down, and warns of
// what they don't match.
func TestPriorityKeepsTheGroupsOfTheHighest(t *testing.T) {
	const text = `
10: [".*t2\\.large.*", ".*t3\\.large.*"]
50: [".*m4\\.4xlarge.*"]
5: ["spot$"]
60: []
`
	for _, x := range []struct {
		name, groups, want string
		warns              string // reasons, and the groups that they name
	}{
		{name: "the highest wins", groups: "m4.4xlarge t2.large t3.large", want: "m4.4xlarge"},
		{name: "two of one priority", groups: "t2.large t3.large x-spot", want: "t2.large t3.large"},
		{name: "several expressions of a priority, in the options' order", groups: "t3.large t2.large", want: "t3.large t2.large"},
		{name: "a group that matches two has the higher", groups: "m4.4xlarge-spot t2.large", want: "m4.4xlarge-spot"},
		{name: "the lower alone", groups: "x-spot", want: "x-spot"},
		{name: "an expression matches a part of a name", groups: "eu-t2.large-b x-spot", want: "eu-t2.large-b"},
		{name: "an anchor holds", groups: "spot-x x-spot", want: "x-spot", warns: "PriorityConfigMapNotMatchedGroup spot-x"},
		{name: "what matches nothing isn't chosen", groups: "other t2.large", want: "t2.large", warns: "PriorityConfigMapNotMatchedGroup other"},
		{
			name: "unless nothing matches", groups: "c5 other", want: "c5 other",
			warns: "PriorityConfigMapNotMatchedGroup c5; PriorityConfigMapNotMatchedGroup other; PriorityConfigMapNoGroupMatched",
		},
		{name: "no option"},
	} {
		var warned []string
		p := mustParse(t, text)
		s := &expander.Priority{Current: func() *expander.Priorities { return p }, Warn: func(reason, message string) {
			if _, named, ok := strings.Cut(message, "node group "); ok && reason == expander.PrioritiesMissGroup {
				reason += " " + strings.Fields(named)[0]
			}
			warned = append(warned, reason)
		}}
		var options []expander.Option
		for _, id := range strings.Fields(x.groups) {
			options = append(options, expander.Option{Group: group(id)})
		}
		for range 2 { // each warning comes once
			if got := ids(s.Best(&expander.Round{}, options)); got != x.want {
				t.Errorf("%s: left are %q, want %q", x.name, got, x.want)
			}
		}
		if got := strings.Join(warned, "; "); got != x.warns {
			t.Errorf("%s: warnings are %q, want %q", x.name, got, x.warns)
		}
	}
}

// TestPrioritiesMayChange follows one strategy while its priorities come, change and go:
// without any it leaves all options, and new ones are warned about anew.
func TestPrioritiesMayChange(t *testing.T) {
	var current *expander.Priorities
	warnings := 0
	s := &expander.Priority{Current: func() *expander.Priorities { return current }, Warn: func(string, string) { warnings++ }}
	options := []expander.Option{{Group: group("a")}, {Group: group("b")}}
	for i, x := range []struct {
		text, want string
		warnings   int // so far
	}{
		{"", "a b", 0},
		{"1: [a]", "a", 1},
		{"1: [b]", "b", 2},
		{"{1: [a], 2: [b]}", "b", 2},
		{"", "a b", 2},
		{"-3: [a]", "a", 3},
	} {
		if current = nil; x.text != "" {
			current = mustParse(t, x.text)
		}
		if got := ids(s.Best(&expander.Round{}, options)); got != x.want || warnings != x.warnings {
			t.Errorf("step %d, %q: left are %q after %d warnings, want %q after %d", i, x.text, got, warnings, x.want, x.warnings)
		}
	}
}

// TestTheExampleOfTheDocs has the chains of docs/expanders.md choose among its options.
func TestTheExampleOfTheDocs(t *testing.T) {
	options := []expander.Option{
		{Group: group("spot-a"), Nodes: 3, Pods: pods(12)}, {Group: group("spot-b"), Nodes: 3, Pods: pods(12)},
		{Group: group("spot-small"), Nodes: 6, Pods: pods(12)}, {Group: group("on-demand"), Nodes: 2, Pods: pods(12)},
	}
	p := mustParse(t, "10:\n- .*\n50:\n- ^spot-\n")
	priority := map[string]expander.Strategy{expander.PriorityName: &expander.Priority{Current: func() *expander.Priorities { return p }}}
	for _, x := range []struct{ list, want string }{{"priority,least-nodes", "map[spot-a:true spot-b:true]"}, {"least-nodes,priority", "map[on-demand:true]"}} {
		chain, err := expander.NewChain(x.list, priority)
		if err != nil {
			t.Fatal(err)
		}
		chosen := map[string]bool{}
		for seed := range uint64(64) {
			chosen[options[chain.Choose(expander.Round{Seed: seed}, options)].Group.ID] = true
		}
		if got := fmt.Sprint(chosen); got != x.want {
			t.Errorf("--expander=%s chooses %s over the seeds, want %s", x.list, got, x.want)
		}
	}
}

// TestPrioritiesThatCannotBeRead says what is wrong with them.
func TestPrioritiesThatCannotBeRead(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"", "the priorities are empty"},
		{"10: [", "reading the priorities"},
		{"high: [a]", "reading the priorities"},
		{"10: a", "reading the priorities"},
		{"10: [a, '(']\n9: ['[']", `priority 10: "(" is not a regular expression`},
	} {
		if p, err := expander.ParsePriorities(x.text); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q is read as %s and %v, want an error with %q", x.text, fmt.Sprint(p), err, x.want)
		}
	}
}
