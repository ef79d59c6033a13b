package nodeprices

import (
	"maps"
	"slices"
	"strings"
)

// Prices are the rules of a price file. They are immutable, and safe for several goroutines. Nil prices
// nothing.
type Prices struct {
	// Currency is the ISO 4217 code of all prices.
	Currency string

	prices []float64 // by rule, an hour, after discount
	// index has the rules by which labels they ask for. Most files have a few such sets of keys,
	// however many rules: a node is looked up once for each.
	index []*keySet
}

// keySet are the rules that ask for the same label keys.
type keySet struct {
	keys  []string       // sorted
	rules map[string]int // the first rule by the values of keys (joined)
}

// Of returns what a node with these labels costs an hour, by the first rule that matches it. ok is false
// when none does.
func (p *Prices) Of(labels map[string]string) (price float64, ok bool) {
	if p == nil {
		return 0, false
	}
	i := p.first(labels)
	if i < 0 {
		return 0, false
	}
	return p.prices[i], true
}

// Rules returns how many rules there are.
func (p *Prices) Rules() int { return len(p.prices) }

// first returns the first rule that matches labels, -1 for none, in O(sets of keys).
func (p *Prices) first(labels map[string]string) int {
	first := -1
	for _, s := range p.index {
		values, ok := joined(s.keys, labels)
		if !ok {
			continue
		}
		if i, ok := s.rules[values]; ok && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// append adds a rule behind the others. Nil labels make a rule that matches nothing.
func (p *Prices) append(labels map[string]string, price float64) {
	i := len(p.prices)
	p.prices = append(p.prices, price)
	if labels == nil {
		return
	}
	keys := slices.Sorted(maps.Keys(labels))
	at := slices.IndexFunc(p.index, func(s *keySet) bool { return slices.Equal(s.keys, keys) })
	if at < 0 {
		at = len(p.index)
		p.index = append(p.index, &keySet{keys, map[string]int{}})
	}
	values, _ := joined(keys, labels)
	if _, taken := p.index[at].rules[values]; !taken {
		p.index[at].rules[values] = i
	}
}

// joined returns the values of labels, in the order of keys; ok is false when a label is missing. The
// separator is in no value of a label.
func joined(keys []string, labels map[string]string) (_ string, ok bool) {
	values := make([]string, len(keys))
	for i, key := range keys {
		if values[i], ok = labels[key]; !ok {
			return "", false
		}
	}
	return strings.Join(values, ","), true
}
