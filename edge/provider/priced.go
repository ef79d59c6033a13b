package provider

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/config/nodeprices"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/door"
)

// Priced is a provider whose groups have the prices of a price file (--node-prices), wherever one of its
// rules matches; the others have those of the provider. The file is read again before each reading of the
// groups: one that can't be read, or has mistakes, leaves the prices as they are.
//
// A group is priced by the labels of its template. Labels that the template lacks, or all where there is
// none, are those of the newest node that was seen of the group: templates of Cluster API seldom have an
// instance type. A node that is gone still counts, since the next one will be like it.
type Priced struct {
	nodegroup.Provider
	path string // of the price file, "" for none
	// needs are the flags that do nothing for groups without a price.
	needs []string
	told  func(currency, failure string)
	log   *slog.Logger

	// file guards the price file and what it says. It is held while the file is read, which may take
	// long, and never while mu is.
	file   sync.Mutex
	text   []byte // when it was last read
	prices *nodeprices.Prices
	failed string // why the file couldn't be used, "" when it could

	mu     sync.Mutex        // guards what follows; informers wait for it
	newest map[string]sample // by group
	said   door.Complaints
}

// sample is what is known of a node that stands for its group.
type sample struct {
	name    string
	created int64 // Unix time
	labels  map[string]string
}

// PricesFile is a price file that was read at the start.
type PricesFile struct {
	path   string
	text   []byte
	prices *nodeprices.Prices
}

// LoadPrices reads the price file of --node-prices; nil without one. An error names the file.
func LoadPrices(path string) (*PricesFile, error) {
	if path == "" {
		return nil, nil
	}
	text, err := nodeprices.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--node-prices: %w", err)
	}
	prices, err := nodeprices.Parse(path, text)
	if err != nil {
		return nil, fmt.Errorf("--node-prices: %w", err)
	}
	return &PricesFile{path, text, prices}, nil
}

// Price returns a provider with the prices of a file, nil for none. told, which may be nil, is called when
// the file was read for the first time and whenever it has changed: with the currency of the prices that
// hold, and why the file isn't used, "" when it is.
func Price(p nodegroup.Provider, file *PricesFile, flags *core.Autoscale, told func(currency, failure string), log *slog.Logger) *Priced {
	out := &Priced{Provider: p, needs: flags.NeedsPrices(), told: told, log: log, newest: map[string]sample{}, said: door.Complaints{}}
	if told == nil {
		out.told = func(string, string) {}
	}
	if file != nil {
		out.path, out.text, out.prices = file.path, file.text, file.prices
		out.told(file.prices.Currency, "")
		log.Info("node prices", "file", file.path, "rules", file.prices.Rules(), "currency", file.prices.Currency)
	}
	return out
}

// Groups implements nodegroup.Provider.
func (p *Priced) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	groups, err := p.Provider.Groups(ctx)
	if err != nil {
		return nil, err
	}
	prices := p.current()
	p.mu.Lock()
	defer p.mu.Unlock()
	groups = slices.Clone(groups) // the provider may keep its own
	listed := map[string]bool{}
	var unpriced []string
	for i := range groups {
		g := &groups[i]
		listed[g.ID] = true
		if g.Unreadable != "" {
			continue // nothing of it but its ID counts
		}
		if price, ok := prices.Of(p.labels(g)); ok {
			g.Price = price
		}
		if !(g.Price > 0) {
			unpriced = append(unpriced, g.ID)
		}
	}
	maps.DeleteFunc(p.newest, func(id string, _ sample) bool { return !listed[id] })
	p.complain(unpriced, len(groups))
	return groups, nil
}

// current returns the prices of the file as it is now.
func (p *Priced) current() *nodeprices.Prices {
	p.file.Lock()
	defer p.file.Unlock()
	p.reload()
	return p.prices
}

// reload reads the price file if it has changed. What is wrong with it is said once.
func (p *Priced) reload() {
	if p.path == "" {
		return
	}
	text, err := nodeprices.Read(p.path)
	if err == nil && bytes.Equal(text, p.text) && p.failed == "" {
		return
	}
	var prices *nodeprices.Prices
	if err == nil {
		prices, err = nodeprices.Parse(p.path, text)
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	changed := why != p.failed || err == nil
	p.failed = why
	if !changed {
		return
	}
	if err != nil {
		p.log.Warn("the node prices were changed and can't be used; the old prices hold", "file", p.path, "err", why)
		p.told(p.prices.Currency, why)
		return
	}
	p.text, p.prices = text, prices
	p.log.Info("node prices reloaded", "file", p.path, "rules", prices.Rules(), "currency", prices.Currency)
	p.told(prices.Currency, "")
}

// labels returns the labels by which a group is priced.
func (p *Priced) labels(g *nodegroup.Group) map[string]string {
	known := p.newest[g.ID].labels
	if g.Template == nil {
		return known
	}
	if len(known) == 0 {
		return g.Template.Labels
	}
	out := maps.Clone(known)
	maps.Copy(out, g.Template.Labels)
	return out
}

// GroupOf implements nodegroup.Provider.
func (p *Priced) GroupOf(node *v1.Node) string {
	id := p.Provider.GroupOf(node)
	if p.path == "" || id == "" {
		return id
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old, ok := p.newest[id]
	created := node.CreationTimestamp.Unix()
	if !ok || created > old.created || created == old.created && node.Name >= old.name {
		p.newest[id] = sample{node.Name, created, node.Labels}
	}
	return id
}

// shownGroups is how many groups without a price a line of the log names.
const shownGroups = 10

// complain says which of the groups have no price when a flag needs prices, and again when others have
// none.
func (p *Priced) complain(unpriced []string, groups int) {
	if len(p.needs) == 0 {
		return
	}
	slices.Sort(unpriced)
	if !p.said.IsNews("prices", strings.Join(unpriced, ",")) {
		return
	}
	shown := strings.Join(unpriced[:min(len(unpriced), shownGroups)], ", ")
	if more := len(unpriced) - shownGroups; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	needed := strings.Join(p.needs, " and ")
	switch {
	case len(unpriced) == 0:
		p.log.Info("all node groups have a price")
	case len(unpriced) == groups:
		p.log.Warn("no node group has a price: the next expander of the list chooses, or chance, and no nodes are consolidated; set --node-prices (docs/prices.md)", "neededBy", needed, "groups", shown)
	default:
		p.log.Warn("some node groups have no price: they are scaled up only for pods that fit no other group, and their nodes are not consolidated; add them to --node-prices (docs/prices.md)", "neededBy", needed, "groups", shown, "of", groups)
	}
}
