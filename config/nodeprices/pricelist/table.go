package pricelist

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthproject/berth/config/nodeprices"
)

// kind is what a price is for.
type kind struct {
	instanceType, region string
	zone                 string // "" for all of the region
	spot, windows        bool
}

// String returns a kind as people write it.
func (k kind) String() string {
	s := k.instanceType + " in " + cmp.Or(k.zone, k.region, "any region")
	if k.spot {
		s += ", spot"
	}
	if k.windows {
		s += ", Windows"
	}
	return s
}

// offer is a price of a list.
type offer struct {
	price float64 // an hour; 0 for one that the list states as 0
	// Of several prices of one thing that with the lowest rank counts, and of these the one that holds
	// since the latest time.
	rank  int
	since time.Time
	where string // in the list, such as "sku ABC"
}

// usable reports whether a price file may have the price.
func (o *offer) usable() bool { return o.price >= nodeprices.MinPrice }

// offers are prices by what they are for.
type offers[K comparable] map[K]offer

// add adds a price. It reports what is wrong when a list has two that hold at the same time.
func (os offers[K]) add(what K, o offer) error {
	old, ok := os[what]
	if ok {
		if c := cmp.Or(cmp.Compare(old.rank, o.rank), o.since.Compare(old.since)); c < 0 {
			return nil
		} else if c == 0 && old.price != o.price {
			return fmt.Errorf("%v has two prices: %v (%s) and %v (%s)", what, old.price, old.where, o.price, o.where)
		}
	}
	os[what] = o
	return nil
}

// table is what was read of a list.
type table struct {
	opts     *Options
	source   *source
	offers   offers[kind]
	gaps     map[kind]string // why there is no price
	notes    []string
	currency string
	from     string // where the currency was read
	faults   []error
	regions  map[string]bool // that the list has
	types    []bool          // by opts.InstanceTypes: the list has such a type
}

func newTable(s *source, o *Options) *table {
	return &table{opts: o, source: s, offers: offers[kind]{}, gaps: map[kind]string{}, regions: map[string]bool{}, types: make([]bool, len(o.InstanceTypes))}
}

// wants reports whether prices of an instance type in a region are asked for.
func (t *table) wants(instanceType, region string) bool {
	t.regions[region] = true
	wanted := len(t.opts.InstanceTypes) == 0
	for i, pattern := range t.opts.InstanceTypes {
		if ok, _ := path.Match(pattern, instanceType); ok { // Validate has refused bad patterns
			wanted, t.types[i] = true, true
		}
	}
	return wanted && (len(t.opts.Regions) == 0 || slices.Contains(t.opts.Regions, region))
}

// add adds a price as it is written in the list.
func (t *table) add(k kind, price, currency string, o offer) {
	if !t.currencyIs(currency, o.where) {
		return
	}
	n, err := number(price)
	if err != nil {
		t.fault(fmt.Errorf("%s: the price of %v is %q: %w", o.where, k, price, err))
		return
	}
	if o.since.After(t.opts.Now) {
		return // not yet
	}
	o.price = n
	if err := t.offers.add(k, o); err != nil {
		t.fault(err)
	}
}

// number returns a price. 0 is one: lists have products that are paid for elsewhere.
func number(price string) (float64, error) {
	n, err := strconv.ParseFloat(price, 64)
	switch {
	case err != nil || !(n <= nodeprices.MaxPrice): // NaN isn't
		return 0, fmt.Errorf("it must be a number up to %v", nodeprices.MaxPrice)
	case n < 0:
		return 0, errors.New("it must not be negative")
	}
	return n, nil
}

// currencyIs reports whether prices in a currency belong to the list; it must be the one of all others.
func (t *table) currencyIs(currency, where string) bool {
	if t.currency == "" {
		t.currency, t.from = cmp.Or(t.opts.Currency, currency), cmp.Or(t.opts.Currency, where)
	}
	if currency == t.currency {
		return true
	}
	why := fmt.Sprintf("%s is in %s", t.from, t.currency)
	if t.opts.Currency != "" {
		why = "--currency is " + t.currency
	}
	t.fault(fmt.Errorf("%s: the price is in %q, and %s: a price file has one currency", where, currency, why))
	return false
}

// maxShown is how many of many things are named.
const maxShown = 10

// fault records that a list can't be used.
func (t *table) fault(err error) { t.faults = append(t.faults, err) }

// gap records why a kind has no price, unless one is found elsewhere.
func (t *table) gap(k kind, why string) { t.gaps[k] = why }

// refusal returns what is wrong with a list, one a line.
func (t *table) refusal() error {
	t.unmatched()
	if more := len(t.faults) - maxShown; more > 0 {
		t.faults = append(t.faults[:maxShown], fmt.Errorf("and %d more", more))
	}
	return errors.Join(t.faults...)
}

// unmatched finds fault with regions and instance types that were asked for and aren't in the list.
func (t *table) unmatched() {
	known := slices.Sorted(maps.Keys(t.regions))
	for _, region := range t.opts.Regions {
		if !t.regions[region] {
			t.fault(fmt.Errorf("--region is %q, which the list doesn't have; it has %s", region, cmp.Or(shown(known), "none")))
		}
	}
	for i, pattern := range t.opts.InstanceTypes {
		if !t.types[i] {
			t.fault(fmt.Errorf("--instance-type is %q, and the list has no such instance type", pattern))
		} else if !strings.ContainsAny(pattern, `*?[\`) {
			t.missing(pattern)
		}
	}
}

// missing notes the regions that were asked for and don't have an instance type.
func (t *table) missing(instanceType string) {
	for _, region := range t.opts.Regions {
		has := false
		for k := range t.offers {
			has = has || k.instanceType == instanceType && k.region == region
		}
		k := kind{instanceType: instanceType, region: region}
		if _, told := t.gaps[k]; !has && !told {
			t.gap(k, "not in the list")
		}
	}
}

// summary returns notes about what has no price.
func (t *table) summary() []string {
	var gaps []string
	for k, o := range t.offers {
		if !o.usable() {
			t.gap(k, fmt.Sprintf("a price of %v, %s", o.price, o.where))
		}
	}
	for k, why := range t.gaps {
		if o := t.offers[k]; !o.usable() {
			gaps = append(gaps, fmt.Sprintf("%v (%s)", k, why))
		}
	}
	slices.Sort(gaps)
	slices.Sort(t.notes)
	notes := slices.Compact(t.notes)
	if len(gaps) > 0 {
		notes = append(notes, fmt.Sprintf("no price, left out: %s", shown(gaps)))
	}
	return notes
}

// shown names some of many things.
func shown(names []string) string {
	if more := len(names) - maxShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
