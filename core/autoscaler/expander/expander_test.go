package expander_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

var schema = cluster.NewSchema()

// group returns a node group of 4 cores and 16 GiB.
func group(id string) *cluster.NodeGroup { return shaped(id, 0, "cpu", "4", "memory", "16Gi") }

// shaped returns a node group with a price an hour whose nodes have these resources.
func shaped(id string, price float64, resources ...string) *cluster.NodeGroup {
	return &cluster.NodeGroup{ID: id, Price: price, Template: schema.ParseNode(testkit.Node(id).Alloc(resources...).Obj(), id)}
}

// pods returns pods that request these resources.
func pods(n int, resources ...string) expander.Pods {
	return expander.Pods{slices.Repeat([]*cluster.Pod{schema.ParsePod(testkit.Pod("p").Req(resources...).Obj())}, n)}
}

// ids returns the groups' IDs, separated by spaces.
func ids(options []expander.Option) string {
	var out []string
	for _, o := range options {
		out = append(out, o.Group.ID)
	}
	return strings.Join(out, " ")
}

// TestStrategiesKeepTheBest has each strategy that compares one number narrow options
// down, which are in the order of their names.
func TestStrategiesKeepTheBest(t *testing.T) {
	options := []expander.Option{
		{Group: group("a"), Nodes: 3, Pods: pods(6), Wasted: 0.50},
		{Group: group("b"), Nodes: 1, Pods: pods(2), Wasted: 0.25},
		{Group: group("c"), Nodes: 2, Pods: pods(9), Wasted: 0.25},
		{Group: group("d"), Nodes: 1, Pods: pods(9), Wasted: 1.50},
	}
	for _, x := range []struct {
		name     string
		strategy expander.Strategy
		options  []expander.Option
		want     string
	}{
		{"most pods", expander.MostPods{}, options, "c d"},
		{"most pods, the first", expander.MostPods{}, options[:2], "a"},
		{"least waste", expander.LeastWaste{}, options, "b c"},
		{"least waste, the last", expander.LeastWaste{}, options[:2], "b"},
		{"fewest nodes", expander.LeastNodes{}, options, "b d"},
		{"fewest nodes, one", expander.LeastNodes{}, options[:3], "b"},
		{"all are equal", expander.LeastNodes{}, []expander.Option{options[1], options[3]}, "b d"},
		{"no option", expander.MostPods{}, nil, ""},
		{"no option to draw from", expander.Random{}, nil, ""},
	} {
		if got := ids(x.strategy.Best(&expander.Round{Schema: schema}, x.options)); got != x.want {
			t.Errorf("%s: left are %q, want %q", x.name, got, x.want)
		}
	}
}

// forbids is a strategy that forbids everything, as somebody outside may.
type forbids struct{}

func (forbids) Best(*expander.Round, []expander.Option) []expander.Option { return nil }

// TestAChainAsksOneStrategyAfterTheOther has chains choose one option.
func TestAChainAsksOneStrategyAfterTheOther(t *testing.T) {
	options := []expander.Option{
		{Group: group("a"), Nodes: 3, Pods: pods(9), Wasted: 0.5},
		{Group: group("b"), Nodes: 2, Pods: pods(9), Wasted: 0.4},
		{Group: group("c"), Nodes: 2, Pods: pods(9), Wasted: 0.3},
		{Group: group("d"), Nodes: 1, Pods: pods(1), Wasted: 0.2},
	}
	for _, x := range []struct {
		name    string
		chain   expander.Chain
		options []expander.Option
		want    int
		by      string
	}{
		{"no option", nil, nil, -1, ""},
		{"least waste by default", nil, options, 3, "least-waste"},
		{"the first decides", expander.Chain{expander.LeastWaste{}, expander.MostPods{}}, options, 3, "least-waste"},
		{"the second decides among what the first leaves", expander.Chain{expander.MostPods{}, expander.LeastWaste{}}, options, 2, "least-waste"},
		{"the third, too", expander.Chain{expander.MostPods{}, expander.LeastNodes{}, expander.LeastWaste{}}, options, 2, "least-waste"},
		{"one is drawn of what the last leaves", expander.Chain{expander.LeastNodes{}}, options[1:3], 0, "random"},
		{"one option is no choice", expander.Chain{expander.LeastWaste{}}, options[:1], 0, ""},
		{"one option is asked about, too", expander.Chain{forbids{}}, options[:1], -1, ""},
		{"nothing is left when all are forbidden", expander.Chain{expander.MostPods{}, forbids{}, expander.LeastWaste{}}, options, -1, ""},
		{"nobody is asked who comes after the decision", expander.Chain{expander.LeastWaste{}, forbids{}}, options, 3, "least-waste"},
	} {
		by := ""
		if got := x.chain.Choose(expander.Round{Schema: schema, By: &by}, x.options); got != x.want || by != x.by {
			t.Errorf("%s: option %d is chosen by %q, want %d by %q", x.name, got, by, x.want, x.by)
		}
	}
}

// TestNamesAreChecked reads what --expander may be.
func TestNamesAreChecked(t *testing.T) {
	for _, x := range []struct{ list, want, err string }{
		{list: "least-waste", want: "least-waste"},
		{list: "priority,least-waste,random", want: "priority least-waste random"},
		{list: "grpc,price,most-pods,least-nodes", want: "grpc price most-pods least-nodes"},
		{list: "", err: `unknown expander ""; give one or more of random, most-pods, least-waste, least-nodes, price, priority, grpc, cost, separated by commas`},
		{list: "least-waste, price", err: `unknown expander " price"`},
		{list: "price,least-waste,price", err: "price is listed twice"},
		{list: "random,price", err: "price comes after random"},
	} {
		names, err := expander.ParseNames(x.list)
		if got := strings.Join(names, " "); got != x.want || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%q is read as %q and %v, want %q and %q", x.list, got, err, x.want, x.err)
		}
	}
}

// TestAChainIsMadeOfNames takes strategies that read options only from the package, and
// the others from its caller.
func TestAChainIsMadeOfNames(t *testing.T) {
	provided := map[string]expander.Strategy{expander.PriorityName: &expander.Priority{}, expander.GRPCName: forbids{}}
	const names = "most-pods,least-waste,least-nodes,price,priority,grpc,random"
	chain, err := expander.NewChain(names, provided)
	want := "[expander.MostPods expander.LeastWaste expander.LeastNodes expander.Price expander.answering expander.answering expander.Random]"
	var types []string
	for _, s := range chain {
		types = append(types, fmt.Sprintf("%T", s))
	}
	if got := fmt.Sprint(types); got != want || err != nil {
		t.Errorf("%s makes the chain %v and %v, want %v", names, got, err, want)
	}
	if chain, err := expander.NewChain(names, nil); err == nil || !strings.Contains(err.Error(), "priority is not available") {
		t.Errorf("without priority and grpc %s makes the chain %v and %v, want an error that names priority", names, chain, err)
	}
	if chain, err := expander.NewChain("", nil); err != nil || len(chain) > 0 {
		t.Errorf("no names make the chain %v and %v, want the default", chain, err)
	}
	if _, err := expander.NewChain("magic", nil); err == nil || !strings.Contains(err.Error(), `unknown expander "magic"`) {
		t.Errorf("of magic the error is %v, want that it is unknown", err)
	}
}

// TestAChoiceIsByTheNameOfTheFlag has each expander choose between two options of which one
// is better in every respect.
func TestAChoiceIsByTheNameOfTheFlag(t *testing.T) {
	options := []expander.Option{{Group: shaped("a", 1, "cpu", "4"), Nodes: 2, Pods: pods(1), Wasted: 0.5}, {Group: shaped("b", 1, "cpu", "4"), Nodes: 1, Pods: pods(2)}}
	second := onlySecond{}
	for _, name := range expander.Names() {
		chain, err := expander.NewChain(name, map[string]expander.Strategy{expander.PriorityName: second, expander.GRPCName: second})
		if err != nil {
			t.Fatal(err)
		}
		by := ""
		chain.Choose(expander.Round{Schema: schema, By: &by}, options)
		if by != name {
			t.Errorf("--expander=%s chooses by %q", name, by)
		}
	}
}

// onlySecond leaves the second of two options.
type onlySecond struct{}

func (onlySecond) Best(_ *expander.Round, options []expander.Option) []expander.Option {
	return options[1:]
}

// TestAnswersOfProvidedStrategiesAreWrittenDown chooses twice by a chain of which one
// strategy was provided.
func TestAnswersOfProvidedStrategiesAreWrittenDown(t *testing.T) {
	options := []expander.Option{{Group: group("a"), Nodes: 1}, {Group: group("b"), Nodes: 1}, {Group: group("c"), Nodes: 2}}
	var answers [][]string
	for _, provided := range []expander.Strategy{expander.LeastNodes{}, forbids{}} {
		chain, err := expander.NewChain("priority,most-pods", map[string]expander.Strategy{expander.PriorityName: provided})
		if err != nil {
			t.Fatal(err)
		}
		chain.Choose(expander.Round{Schema: schema, Answers: &answers}, options)
	}
	if got, want := fmt.Sprint(answers), "[[a b] []]"; got != want {
		t.Errorf("the answers are %s, want %s", got, want)
	}
}

// TestEqualOptionsAreDrawnFrom has chains choose among three zonal groups of one shape,
// under many seeds: each group is chosen about as often as the others, and one that is
// worse never.
func TestEqualOptionsAreDrawnFrom(t *testing.T) {
	var options []expander.Option
	for _, id := range []string{"zone-a", "zone-b", "zone-c"} {
		options = append(options, expander.Option{Group: group(id), Nodes: 2, Pods: pods(4), Wasted: 0.1})
	}
	options = slices.Insert(options, 1, expander.Option{Group: group("worse"), Nodes: 3, Pods: pods(3), Wasted: 0.2})
	for number, chain := range []expander.Chain{nil, {expander.LeastWaste{}}, {expander.MostPods{}, expander.LeastNodes{}}} {
		chosen := map[int]int{}
		for seed := range uint64(3000) {
			chosen[chain.Choose(expander.Round{Seed: seed, Request: 1}, options)]++
		}
		for i, min := range []int{900, 0, 900, 900} { // the standard deviation is 26
			if n := chosen[i]; n < min || min == 0 && n > 0 {
				t.Errorf("chain %d: option %d (%s) is chosen %d times of 3000: %v; want 0, 2 and 3 some 1000 times each", number, i, options[i].Group.ID, n, chosen)
			}
		}
	}
}

// TestRandomIsEvenAndSeeded draws among three options in the rounds of many requests, under many
// seeds: each is drawn about as often as the others, and by the same round again.
func TestRandomIsEvenAndSeeded(t *testing.T) {
	options := []expander.Option{{Group: group("a")}, {Group: group("b")}, {Group: group("c")}}
	for _, x := range []struct {
		name  string
		round func(i int) expander.Round
	}{
		{"seeds", func(i int) expander.Round { return expander.Round{Seed: uint64(i)} }},
		{"requests", func(i int) expander.Round { return expander.Round{Request: uint64(i)} }},
		{"rounds", func(i int) expander.Round { return expander.Round{Number: i} }},
	} {
		drawn := map[string]int{}
		for i := range 3000 {
			r := x.round(i)
			got := ids(expander.Random{}.Best(&r, options))
			if again := ids(expander.Random{}.Best(&r, options)); again != got {
				t.Fatalf("%s: round %+v draws %s, then %s", x.name, r, got, again)
			}
			drawn[got]++
		}
		for _, id := range []string{"a", "b", "c"} {
			if n := drawn[id]; n < 900 || n > 1100 { // the standard deviation is 26
				t.Errorf("%s: of 3000 draws %d are of %s, want some 1000 of each: %v", x.name, n, id, drawn)
			}
		}
	}
}

// TestPropertyAChainChoosesOneOfTheOptions makes random chains choose among random
// options: the result is an option wherever there is one, the same each time, and the
// options are left as they were.
func TestPropertyAChainChoosesOneOfTheOptions(t *testing.T) {
	all := []expander.Strategy{expander.Random{}, expander.MostPods{}, expander.LeastWaste{}, expander.LeastNodes{}, expander.Price{},
		&expander.Priority{Current: func() *expander.Priorities { return nil }}}
	rapid.Check(t, func(t *rapid.T) {
		uniform := func(n int, what string) int { return testkit.Uniform(t, n, what) }
		var options []expander.Option
		for i := range uniform(6, "options") {
			g := shaped(fmt.Sprint("g", i), float64(uniform(3, "price")), "cpu", fmt.Sprint(1+uniform(4, "cpu")), "memory", "8Gi")
			options = append(options, expander.Option{Group: g, Nodes: 1 + uniform(3, "nodes"), Pods: pods(1+uniform(3, "pods"), "cpu", "1"), Wasted: float64(uniform(3, "wasted")) / 2})
		}
		var chain expander.Chain
		for range uniform(4, "strategies") {
			chain = append(chain, all[uniform(len(all), "strategy")])
		}
		r := expander.Round{Seed: uint64(uniform(100, "seed")), Request: uint64(uniform(100, "request")), Number: uniform(5, "round"), Nodes: uniform(300, "cluster"), Schema: schema}
		before := slices.Clone(options)
		got, again := chain.Choose(r, options), chain.Choose(r, options)
		if got != again || got >= len(options) || (got < 0) != (len(options) == 0) {
			t.Errorf("of %d options %d is chosen, then %d", len(options), got, again)
		}
		if ids(options) != ids(before) {
			t.Errorf("the options are %s after the choice; they were %s", ids(options), ids(before))
		}
	})
}

// TestPreferencesGiveWayToWhatAnOperatorSays has chains in which some strategy goes by a
// price, a priority or an answer from outside.
func TestPreferencesGiveWayToWhatAnOperatorSays(t *testing.T) {
	outside := map[string]expander.Strategy{expander.PriorityName: &expander.Priority{}, expander.GRPCName: expander.Random{}}
	for list, want := range map[string]bool{
		"": true, "least-waste": true, "most-pods,least-nodes,random": true,
		"price": false, "least-waste,price": false, "cost": false, "priority,least-waste": false, "grpc": false,
	} {
		chain, err := expander.NewChain(list, outside)
		if err != nil {
			t.Fatal(err)
		}
		if got := chain.WeighsPreferences(); got != want {
			t.Errorf("that preferences count with %q is %v, want %v", list, got, want)
		}
	}
}
