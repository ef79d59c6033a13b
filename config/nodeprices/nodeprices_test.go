package nodeprices_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/config/nodeprices"
)

const head = "apiVersion: berth.dev/v1alpha1\nkind: NodePrices\n"

// TestFirstMatchingRulePrices has spot before on-demand, a default for a zone and one for the rest.
func TestFirstMatchingRulePrices(t *testing.T) {
	p, err := nodeprices.Parse("prices.yaml", []byte(head+`
currency: EUR
discountFactor: 0.9
rules:
- match: {node.kubernetes.io/instance-type: m7i.large, karpenter.sh/capacity-type: spot}
  pricePerHour: 0.04
  discountFactor: 1
- match: {node.kubernetes.io/instance-type: m7i.large}
  pricePerHour: 0.1
- match: {topology.kubernetes.io/zone: eu-1a}
  pricePerHour: 1
- match: {}
  pricePerHour: 2
  discountFactor: 0.5
`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Currency != "EUR" || p.Rules() != 4 {
		t.Errorf("currency %s and %d rules, want EUR and 4", p.Currency, p.Rules())
	}
	const instanceType, zone, capacity = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
	for _, x := range []struct {
		labels map[string]string
		want   float64
	}{
		{map[string]string{instanceType: "m7i.large", capacity: "spot", zone: "eu-1a"}, 0.04},
		{map[string]string{instanceType: "m7i.large", capacity: "on-demand", zone: "eu-1a"}, 0.09},
		{map[string]string{instanceType: "m7i.large"}, 0.09},
		{map[string]string{instanceType: "m7i.xlarge", zone: "eu-1a"}, 0.9},
		{map[string]string{instanceType: "m7i.xlarge", zone: "eu-1b"}, 1},
		{nil, 1},
	} {
		if got, ok := p.Of(x.labels); !ok || got < x.want-1e-12 || got > x.want+1e-12 {
			t.Errorf("%v costs %v (known: %t), want %v", x.labels, got, ok, x.want)
		}
	}
	if _, ok := (*nodeprices.Prices)(nil).Of(nil); ok {
		t.Error("without a file a node has a price")
	}
}

// TestNoRulePricesNothing has a node that no rule matches.
func TestNoRulePricesNothing(t *testing.T) {
	p, err := nodeprices.Parse("p", []byte(head+"currency: USD\nrules: [{match: {a: b}, pricePerHour: 1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range []map[string]string{nil, {"a": "c"}, {"b": "b"}} {
		if price, ok := p.Of(labels); ok {
			t.Errorf("%v costs %v, want no price", labels, price)
		}
	}
}

// TestRefusals has files with everything that may be wrong. Each refusal names the file, the field, its
// value and what would be accepted.
func TestRefusals(t *testing.T) {
	const ok = "currency: USD\nrules:\n- {match: {a: b}, pricePerHour: 1}\n"
	for name, x := range map[string]struct{ text, want string }{
		"empty":             {" \n", "node prices in prices.yaml: the file is empty"},
		"another kind":      {"apiVersion: v1\nkind: ConfigMap\n", `apiVersion is "v1" and kind "ConfigMap"; they must be "berth.dev/v1alpha1" and "NodePrices"`},
		"no currency":       {head + "rules: [{match: {a: b}, pricePerHour: 1}]", "currency: Required value: give the ISO 4217 code of all prices"},
		"unknown currency":  {head + "currency: usd\nrules: [{match: {a: b}, pricePerHour: 1}]", `currency: Invalid value: "usd": it must be an ISO 4217 code in capitals`},
		"a currency list":   {head + "currency: [USD, EUR]\nrules: [{match: {a: b}, pricePerHour: 1}]", `currency: Invalid value: "[USD EUR]": it must be an ISO 4217 code in capitals`},
		"no kind":           {"apiVersion: {}\ncurrency: USD\n", `apiVersion is "map[]" and kind ""; they must be`},
		"the same rule":     {head + ok + "- {match: {a: b}, pricePerHour: 2}", `rules[1].match: Invalid value: "a=b": it can't be reached: rules[0] matches all of these nodes`},
		"a label twice":     {head + "currency: USD\nrules: [{match: {a: b, a: c}, pricePerHour: 1}]", `[4:24] mapping key "a" already defined at [4:18]`},
		"no rules":          {head + "currency: USD\n", "rules: Required value: give at least one rule"},
		"no match":          {head + ok + "- pricePerHour: 1", "rules[1].match: Required value: give the labels of the nodes, or {}"},
		"no price":          {head + ok + "- match: {}", "rules[1].pricePerHour: Required value: give the price of one node"},
		"null price":        {head + ok + "- {match: {}, pricePerHour: ~}", "rules[1].pricePerHour: Required value"},
		"negative price":    {head + ok + "- {match: {}, pricePerHour: -1}", "rules[1].pricePerHour: Invalid value: -1: it must be a number from 1e-06 to 1e+09"},
		"price of 0":        {head + ok + "- {match: {}, pricePerHour: 0}", "rules[1].pricePerHour: Invalid value: 0: it must be a number from 1e-06 to 1e+09; give nodes that cost nothing a small price"},
		"NaN":               {head + ok + "- {match: {}, pricePerHour: .nan}", `rules[1].pricePerHour: Invalid value: "NaN": it must be a number`},
		"infinite":          {head + ok + "- {match: {}, pricePerHour: .inf}", `rules[1].pricePerHour: Invalid value: "+Inf": it must be a number`},
		"huge":              {head + ok + "- {match: {}, pricePerHour: 1000000001}", "rules[1].pricePerHour: Invalid value: 1.000000001e+09: it must be a number from 1e-06 to 1e+09"},
		"beyond a float":    {head + ok + "- {match: {}, pricePerHour: 1e999}", `rules[1].pricePerHour: Invalid value: "1e999": it must be a number from 1e-06 to 1e+09`},
		"quoted":            {head + ok + `- {match: {}, pricePerHour: "1"}`, `rules[1].pricePerHour: Invalid value: "1": it must be a number from 1e-06 to 1e+09, without quotes or a unit`},
		"with a unit":       {head + ok + `- {match: {}, pricePerHour: $1}`, `rules[1].pricePerHour: Invalid value: "$1": it must be a number from 1e-06 to 1e+09, without quotes or a unit`},
		"a surcharge":       {head + ok + "- {match: {}, pricePerHour: 1, discountFactor: 1.1}", "rules[1].discountFactor: Invalid value: 1.1: it must be a number from 0.001 to 1"},
		"free":              {head + ok + "- {match: {}, pricePerHour: 1, discountFactor: 0}", "rules[1].discountFactor: Invalid value: 0: it must be a number from 0.001 to 1"},
		"a common discount": {head + "discountFactor: 30\n" + ok, "discountFactor: Invalid value: 30: it must be a number from 0.001 to 1"},
		"twice":             {head + ok + "- {match: {a: b}, pricePerHour: 2}", `rules[1].match: Invalid value: "a=b": it can't be reached: rules[0] matches all of these nodes and comes first; move it above that rule, or remove it`},
		"behind a wider":    {head + ok + "- {match: {c: d, a: b}, pricePerHour: 2}", `rules[1].match: Invalid value: "a=b,c=d": it can't be reached: rules[0] matches`},
		"behind all":        {head + "currency: USD\nrules:\n- {match: {}, pricePerHour: 1}\n- {match: {a: b}, pricePerHour: 2}", `rules[1].match: Invalid value: "a=b": it can't be reached: rules[0]`},
		"no label":          {head + ok + "- {match: {a b: c}, pricePerHour: 1}", `rules[1].match[a b]: Invalid value: "a b": it must be the name of a label`},
		"no label value":    {head + ok + "- {match: {c: d e}, pricePerHour: 1}", `rules[1].match[c]: Invalid value: "d e": it must be the value of a label`},
		"unquoted":          {head + ok + "- {match: {c: true}, pricePerHour: 1}", `rules[1].match[c]: Invalid value: true: it must be a string; put it in quotes`},
		"unknown field":     {head + ok + "- {match: {}, price: 1}", `unknown field "price"`},
		"a key twice":       {head + ok + "- {match: {c: d, c: e}, pricePerHour: 1}", "prices.yaml"},
		"two documents":     {head + ok + "---\n" + head + ok, "prices.yaml: there is more than one YAML document; put all rules into the first"},
		"no YAML":           {head + "rules: [", "node prices in prices.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := nodeprices.Parse("prices.yaml", []byte(x.text)); err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "prices.yaml") {
				t.Errorf("the error is %v, want one with %q", err, x.want)
			}
		})
	}
}

// TestAllFaultsAreNamed has a file with a fault in each of three fields: one reading names all.
func TestAllFaultsAreNamed(t *testing.T) {
	_, err := nodeprices.Parse("p", []byte(head+"currency: XXX\nrules:\n- {match: {a: b}, pricePerHour: -1}\n- {pricePerHour: 1}\n"))
	for _, want := range []string{"currency", "rules[0].pricePerHour", "rules[1].match"} {
		if err == nil || !strings.Contains(err.Error(), "\n"+want+": ") {
			t.Errorf("%v doesn't name %s on a line of its own", err, want)
		}
	}
}

// TestTooMuchIsRefused has a file and a number of rules beyond the bounds.
func TestTooMuchIsRefused(t *testing.T) {
	if _, err := nodeprices.Parse("p", []byte(head+"currency: USD\nrules: ["+strings.Repeat("{},", 10001)+"]")); err == nil || !strings.Contains(err.Error(), "rules: Too many: 10001: must have at most 10000 items") {
		t.Errorf("10001 rules: %v", err)
	}
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(path, make([]byte, 4<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := nodeprices.Load(path); err == nil || !strings.Contains(err.Error(), path+": the file has more than 4194304 bytes") {
		t.Errorf("a file of more than 4 MiB: %v", err)
	}
	if _, err := nodeprices.Load(path + "x"); err == nil || !strings.Contains(err.Error(), path+"x") {
		t.Errorf("a file that isn't there: %v", err)
	}
}

// TestPriceByItself reads prices as an annotation has them.
func TestPriceByItself(t *testing.T) {
	for raw, want := range map[string]float64{"0.42": 0.42, "1e3": 1000, "0": 0, "-1": 0, "NaN": 0, "+Inf": 0, "1e10": 0, "$1": 0, "": 0} {
		if got, err := nodeprices.ParsePrice(raw); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %v, %v; want %v", raw, got, err, want)
		}
	}
}

// TestPropertyTheFirstRuleOfTheFileWins compares the index with a search through the rules from the first
// on, and the refusals with the rules that this search can't find for a node of their own labels.
func TestPropertyTheFirstRuleOfTheFileWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.SampledFrom([]string{"a", "b", "c"})
		labels := rapid.MapOfN(label, rapid.SampledFrom([]string{"x", "y"}), 0, 3)
		rules := rapid.SliceOfN(labels, 1, 6).Draw(t, "rules")
		search := func(node map[string]string) int {
			return slices.IndexFunc(rules, func(rule map[string]string) bool {
				for key, value := range rule {
					if got, ok := node[key]; !ok || got != value {
						return false
					}
				}
				return true
			})
		}
		var text strings.Builder
		text.WriteString(head + "currency: USD\nrules:\n")
		reachable := true
		for i, rule := range rules {
			var pairs []string
			for _, key := range slices.Sorted(maps.Keys(rule)) {
				pairs = append(pairs, key+": "+rule[key])
			}
			text.WriteString("- {match: {" + strings.Join(pairs, ", ") + "}, pricePerHour: " + string(rune('1'+i)) + "}\n")
			reachable = reachable && search(rule) == i
		}
		p, err := nodeprices.Parse("p", []byte(text.String()))
		if (err == nil) != reachable {
			t.Fatalf("%s: %v; all rules can be reached: %t", text.String(), err, reachable)
		}
		if err != nil {
			return
		}
		node := labels.Draw(t, "node")
		want := search(node)
		if got, ok := p.Of(node); ok != (want >= 0) || ok && got != float64(want+1) {
			t.Fatalf("%s: %v costs %v (known: %t), want rule %d", text.String(), node, got, ok, want)
		}
	})
}

// FuzzParse reads any text. What is accepted prices nodes above 0.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"currency: USD\nrules: [{match: {}, pricePerHour: 1e-6, discountFactor: 0.001}]\n",
		"currency: USD\nrules: [{match: {a: &x b}, pricePerHour: 1}, {match: {a: *x}}, {<<: *y}]\n",
		"rules: [null, {match: [a]}, 3]\n", "discountFactor: {}\n", "currency: [\n",
	} {
		f.Add([]byte(head + text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := nodeprices.Parse("p", raw)
		if err != nil {
			return
		}
		if price, ok := p.Of(nil); ok && !(price > 0 && price <= 1e9) {
			t.Errorf("a node costs %v", price)
		}
	})
}
