package provider_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/provider"
	"github.com/berthproject/berth/internal/test/testkit"
)

const instanceType = "node.kubernetes.io/instance-type"

// pricing is a priced provider with a price file, and what it has logged and told.
type pricing struct {
	*provider.Priced
	inner *groups
	path  string // of the price file
	log   bytes.Buffer
	told  []string
}

// newPricing returns a provider with a price file of some rules; without a file when there are none.
func newPricing(t *testing.T, rules string, list []nodegroup.Group, flags core.Autoscale) *pricing {
	t.Helper()
	p := &pricing{inner: &groups{list: list}, path: filepath.Join(t.TempDir(), "prices.yaml")}
	var file *provider.PricesFile
	if rules != "" {
		p.write(t, rules)
		file = testkit.Must(provider.LoadPrices(p.path))
	}
	told := func(currency, failure string) {
		p.told = append(p.told, strings.TrimSpace(currency+" "+strings.ReplaceAll(failure, p.path, "FILE")))
	}
	p.Priced = provider.Price(p.inner, file, &flags, told, slog.New(slog.NewTextHandler(&p.log, nil)))
	p.log.Reset()
	return p
}

// write writes the price file.
func (p *pricing) write(t *testing.T, rules string) {
	t.Helper()
	if err := os.WriteFile(p.path, []byte("apiVersion: berth.dev/v1alpha1\nkind: NodePrices\ncurrency: EUR\nrules:\n"+rules), 0o600); err != nil {
		t.Fatal(err)
	}
}

// prices returns the prices of all groups, by ID.
func (p *pricing) prices(t *testing.T) string {
	t.Helper()
	list, err := p.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range list {
		out = append(out, fmt.Sprintf("%s %v", g.ID, g.Price))
	}
	return strings.Join(out, ", ")
}

// logged returns what was logged since it was last called, without times.
func (p *pricing) logged() string {
	defer p.log.Reset()
	var out []string
	for line := range strings.Lines(p.log.String()) {
		_, message, _ := strings.Cut(line, "level=")
		out = append(out, strings.TrimSpace(strings.ReplaceAll(message, p.path, "FILE")))
	}
	return strings.Join(out, "\n")
}

// ofType returns a template with an instance type.
func ofType(name string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{instanceType: name}}}
}

// TestThePriceFileWins has groups that a rule matches, with and without a price of the provider, groups
// that none matches, and one that the provider couldn't read.
func TestThePriceFileWins(t *testing.T) {
	list := []nodegroup.Group{
		{ID: "both", Price: 9, Template: ofType("large")},
		{ID: "file", Template: ofType("large")},
		{ID: "neither", Template: ofType("small")},
		{ID: "noTemplate", TemplateError: "none"},
		{ID: "provider", Price: 9, Template: ofType("small")},
		{ID: "unreadable", Unreadable: "timeout", Template: ofType("large")},
	}
	p := newPricing(t, "- {match: {"+instanceType+": large}, pricePerHour: 2, discountFactor: 0.5}\n", list, core.DefaultAutoscale())
	if got, want := p.prices(t), "both 1, file 1, neither 0, noTemplate 0, provider 9, unreadable 0"; got != want {
		t.Errorf("prices are %s, want %s", got, want)
	}
	if list[0].Price != 9 {
		t.Error("the provider's own list was changed")
	}
	if got := p.logged(); got != "" {
		t.Errorf("no flag needs prices, but it logged\n%s", got)
	}
	p.inner.err = errors.New("down")
	if _, err := p.Groups(t.Context()); !errors.Is(err, p.inner.err) {
		t.Errorf("a list that fails is %v, want the provider's error", err)
	}
}

// TestNodesSayWhatTemplatesDoNot has groups without a template, or with one that lacks the instance type:
// the newest node that was seen says it, also when it is gone. What the template says holds.
func TestNodesSayWhatTemplatesDoNot(t *testing.T) {
	rules := "- {match: {" + instanceType + ": large}, pricePerHour: 2}\n- {match: {" + instanceType + ": small}, pricePerHour: 1}\n"
	list := []nodegroup.Group{{ID: "a"}, {ID: "b", Template: &v1.Node{}}, {ID: "c", Template: ofType("small")}}
	p := newPricing(t, rules, list, core.DefaultAutoscale())
	if got, want := p.prices(t), "a 0, b 0, c 1"; got != want {
		t.Errorf("without nodes prices are %s, want %s", got, want)
	}
	at := time.Now()
	node := func(name, group, of string, age time.Duration) {
		n := ofType(of)
		n.Name, n.CreationTimestamp, n.Labels["group"] = name, metav1.NewTime(at.Add(-age)), group
		if got := p.GroupOf(n); got != group {
			t.Errorf("the group of %s is %q, want %q", name, got, group)
		}
	}
	for _, group := range []string{"a", "b", "c", ""} {
		node("new-"+group, group, "large", time.Hour)
		node("old-"+group, group, "small", 2*time.Hour)
	}
	if got, want := p.prices(t), "a 2, b 2, c 1"; got != want {
		t.Errorf("with nodes prices are %s, want %s", got, want)
	}
	node("newest-a", "a", "small", 0)
	if got, want := p.prices(t), "a 1, b 2, c 1"; got != want {
		t.Errorf("with a newer node of a prices are %s, want %s", got, want)
	}
	p.inner.list = list[1:]
	p.prices(t)
	p.inner.list = list
	if got, want := p.prices(t), "a 0, b 2, c 1"; got != want {
		t.Errorf("after a was another group prices are %s, want %s", got, want)
	}
}

// TestThePriceFileIsReloaded changes the file step by step. One that can't be used is said once and leaves
// the prices as they are.
func TestThePriceFileIsReloaded(t *testing.T) {
	rule := func(price string) string { return "- {match: {}, pricePerHour: " + price + "}\n" }
	p := newPricing(t, rule("1"), []nodegroup.Group{{ID: "a"}}, core.DefaultAutoscale())
	for i, x := range []struct {
		does      func()
		want      string // prices
		log, told string
	}{
		{func() {}, "a 1", "", "EUR"},
		{func() { p.write(t, rule("2")) }, "a 2", `INFO msg="node prices reloaded" file=FILE rules=1 currency=EUR`, "EUR"},
		{func() {}, "a 2", "", ""},
		{func() { p.write(t, rule("-1")) }, "a 2",
			`WARN msg="the node prices were changed and can't be used; the old prices hold" file=FILE err="node prices in FILE:\nrules[0].pricePerHour: Invalid value: -1: it must be a number from 1e-06 to 1e+09"`,
			"EUR node prices in FILE:\nrules[0].pricePerHour: Invalid value: -1: it must be a number from 1e-06 to 1e+09"},
		{func() {}, "a 2", "", ""},
		{func() { _ = os.Remove(p.path) }, "a 2",
			`WARN msg="the node prices were changed and can't be used; the old prices hold" file=FILE err="reading node prices: open FILE: no such file or directory"`,
			"EUR reading node prices: open FILE: no such file or directory"},
		{func() { p.write(t, rule("2")) }, "a 2", `INFO msg="node prices reloaded" file=FILE rules=1 currency=EUR`, "EUR"},
		{func() {}, "a 2", "", ""},
	} {
		x.does()
		got, log, told := p.prices(t), p.logged(), strings.Join(p.told, "; ")
		p.told = nil
		if got != x.want || log != x.log || told != x.told {
			t.Errorf("step %d: %s, want %s\nlogged %s\nwant   %s\ntold %s\nwant %s", i, got, x.want, log, x.log, told, x.told)
		}
	}
}

// TestGroupsWithoutAPriceAreNamed when a flag needs prices, and again when others have none.
func TestGroupsWithoutAPriceAreNamed(t *testing.T) {
	var list []nodegroup.Group
	for i := range 12 {
		list = append(list, nodegroup.Group{ID: fmt.Sprintf("g%02d", i)})
	}
	flags := core.DefaultAutoscale()
	flags.Expander, flags.Consolidation = "cost,least-waste", true
	p := newPricing(t, "", list, flags)
	const needs = `neededBy="--expander=cost,least-waste and --consolidation"`
	for i, x := range []struct {
		priced int // of the groups, the last ones
		want   string
	}{
		{0, `WARN msg="no node group has a price: the next expander of the list chooses, or chance, and no nodes are consolidated; set --node-prices (docs/prices.md)" ` + needs + ` groups="g00, g01, g02, g03, g04, g05, g06, g07, g08, g09 and 2 more"`},
		{0, ""},
		{10, `WARN msg="some node groups have no price: they are scaled up only for pods that fit no other group, and their nodes are not consolidated; add them to --node-prices (docs/prices.md)" ` + needs + ` groups="g00, g01" of=12`},
		{10, ""},
		{12, `INFO msg="all node groups have a price"`},
		{12, ""},
	} {
		for k := range list[12-x.priced:] {
			list[12-x.priced+k].Price = 1
		}
		p.prices(t)
		if got := p.logged(); got != x.want {
			t.Errorf("step %d: logged %s\nwant %s", i, got, x.want)
		}
	}
}

// TestAPricedProviderIsSilent has a flag that needs prices, and a price for the only group.
func TestAPricedProviderIsSilent(t *testing.T) {
	flags := core.DefaultAutoscale()
	flags.Expander = "cost"
	p := newPricing(t, "", []nodegroup.Group{{ID: "a", Price: 1}}, flags)
	p.prices(t)
	if got := p.logged(); got != "" {
		t.Errorf("it logged %s", got)
	}
}

// TestPriceFilesAreReadAtTheStart has one with a mistake, and none.
func TestPriceFilesAreReadAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if _, err := provider.LoadPrices(path); err == nil || !strings.HasPrefix(err.Error(), "--node-prices: reading node prices: open "+path) {
		t.Errorf("a file that is missing: %v", err)
	}
	if err := os.WriteFile(path, []byte("kind: Prices\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := provider.LoadPrices(path); err == nil || !strings.HasPrefix(err.Error(), "--node-prices: node prices in "+path+": apiVersion") {
		t.Errorf("a file of another kind: %v", err)
	}
	if file, err := provider.LoadPrices(""); file != nil || err != nil {
		t.Errorf("without a file: %v, %v", file, err)
	}
}

// TestAFileThatIsReadSlowlyKeepsNoNodeWaiting: informers ask of which group a node is while the price file
// is read, which hangs as on a file system that has gone away. The file is a pipe here.
func TestAFileThatIsReadSlowlyKeepsNoNodeWaiting(t *testing.T) {
	p := newPricing(t, "- {match: {}, pricePerHour: 1}\n", []nodegroup.Group{{ID: "a"}}, core.DefaultAutoscale())
	if err := errors.Join(os.Remove(p.path), syscall.Mkfifo(p.path, 0o600)); err != nil {
		t.Fatal(err)
	}
	listed := make(chan error, 1)
	go func() {
		_, err := p.Groups(t.Context())
		listed <- err
	}()
	pipe, err := os.OpenFile(p.path, os.O_WRONLY, 0) // returns when the file is being read
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	node := testkit.Node("a1").Obj()
	node.Labels["group"] = "a"
	go func() { asked <- p.GroupOf(node) }()
	select {
	case got := <-asked:
		if got != "a" {
			t.Errorf("the node is of group %q, want a", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody is told of which group a node is while the price file is read")
	}
	if err := errors.Join(pipe.Close(), <-listed); err != nil {
		t.Error(err)
	}
}
