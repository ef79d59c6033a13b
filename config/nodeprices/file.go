package nodeprices

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// This file reads and checks the text of a price file.

// APIVersion and Kind are those of a price file.
const (
	APIVersion = "berth.dev/v1alpha1"
	Kind       = "NodePrices"
)

// file is a price file as it is written. Values that a decoder would refuse without naming their field
// are read as they are, and checked here.
type file struct {
	APIVersion any `yaml:"apiVersion"`
	Kind       any `yaml:"kind"`
	// Currency of all prices, as an ISO 4217 code.
	Currency any `yaml:"currency"`
	// DiscountFactor is that of rules without their own; 1 when absent.
	DiscountFactor any       `yaml:"discountFactor"`
	Rules          []written `yaml:"rules"`
}

// written is a rule of a price file.
type written struct {
	// Match are labels that a node must have, all of them; {} matches every node.
	Match map[string]any `yaml:"match"`
	// PricePerHour of one node, before the discount.
	PricePerHour any `yaml:"pricePerHour"`
	// DiscountFactor is what the price is multiplied with.
	DiscountFactor any `yaml:"discountFactor"`
}

// What a price file may have. Prices have to be numbers that can be added and compared: the bounds leave
// room for currencies of small units.
const (
	MinPrice, MaxPrice   = 1e-6, 1e9
	minFactor, maxFactor = 0.001, 1
	MaxRules             = 10000
	maxSize              = 4 << 20 // bytes
)

// Load reads a price file. Errors name the file.
func Load(path string) (*Prices, error) {
	raw, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, raw)
}

// Read returns the text of a price file. It reads no more than a price file may have.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading node prices: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	raw, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading node prices: %w", err)
	case len(raw) > maxSize:
		return nil, fmt.Errorf("node prices in %s: the file has more than %d bytes; keep the rules of the instance types that node groups have", path, maxSize)
	}
	return raw, nil
}

// Parse reads the text of a price file; path names it in errors. The error joins all that is wrong, one a
// line: the field, its value and what would be accepted.
func Parse(path string, raw []byte) (*Prices, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, fmt.Errorf("node prices in %s: the file is empty; it must have apiVersion %s, kind %s, currency and rules", path, APIVersion, Kind)
	}
	var in file
	read := yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict())
	if err := read.Decode(&in); err != nil {
		return nil, fmt.Errorf("node prices in %s: %s", path, yaml.FormatError(err, false, false))
	}
	if err := read.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("node prices in %s: there is more than one YAML document; put all rules into the first", path)
	}
	if in.APIVersion != APIVersion || in.Kind != Kind {
		return nil, fmt.Errorf("node prices in %s: apiVersion is %q and kind %q; they must be %q and %q", path, text(in.APIVersion), text(in.Kind), APIVersion, Kind)
	}
	p, errs := in.prices()
	if len(errs) > 0 {
		all := make([]error, 0, len(errs))
		for _, err := range errs { // one a line
			all = append(all, err)
		}
		return nil, fmt.Errorf("node prices in %s:\n%w", path, errors.Join(all...))
	}
	return p, nil
}

// text returns a value as people see it, "" for none.
func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// prices returns what the file says, and all that is wrong with it.
func (f *file) prices() (*Prices, field.ErrorList) {
	var errs field.ErrorList
	currency := text(f.Currency)
	if currency == "" {
		errs = append(errs, field.Required(field.NewPath("currency"), "give the ISO 4217 code of all prices, such as USD"))
	} else if !IsCurrency(currency) {
		errs = append(errs, field.Invalid(field.NewPath("currency"), currency, "it must be an ISO 4217 code in capitals, such as USD, EUR or JPY"))
	}
	common, err := number(field.NewPath("discountFactor"), f.DiscountFactor, 1, minFactor, maxFactor)
	errs = append(errs, err...)
	path := field.NewPath("rules")
	switch {
	case len(f.Rules) == 0:
		errs = append(errs, field.Required(path, "give at least one rule with match and pricePerHour"))
	case len(f.Rules) > MaxRules:
		return nil, append(errs, field.TooMany(path, len(f.Rules), MaxRules))
	}
	p := &Prices{Currency: currency}
	for i := range f.Rules {
		errs = append(errs, p.add(path.Index(i), &f.Rules[i], common)...)
	}
	return p, errs
}

// add adds a rule behind the others. One that no node can reach is refused: it was meant to say something.
func (p *Prices) add(path *field.Path, w *written, common float64) (errs field.ErrorList) {
	labels, errs := matched(path.Child("match"), w.Match)
	price, more := number(path.Child("pricePerHour"), w.PricePerHour, 0, MinPrice, MaxPrice)
	if w.PricePerHour == nil {
		more = append(more, field.Required(path.Child("pricePerHour"), "give the price of one node for an hour"))
	}
	errs = append(errs, more...)
	factor, more := number(path.Child("discountFactor"), w.DiscountFactor, common, minFactor, maxFactor)
	errs = append(errs, more...)
	if labels != nil {
		if first := p.first(labels); first >= 0 {
			errs = append(errs, field.Invalid(path.Child("match"), Text(labels), fmt.Sprintf("it can't be reached: rules[%d] matches all of these nodes and comes first; move it above that rule, or remove it", first)))
		}
	}
	p.append(labels, price*factor)
	return errs
}

// matched returns the labels that a rule asks for; nil when some are wrong.
func matched(path *field.Path, in map[string]any) (map[string]string, field.ErrorList) {
	if in == nil {
		return nil, field.ErrorList{field.Required(path, "give the labels of the nodes, or {} for all nodes that no earlier rule matches")}
	}
	var errs field.ErrorList
	out := make(map[string]string, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		at := path.Key(key)
		if why := content.IsLabelKey(key); len(why) > 0 {
			errs = append(errs, field.Invalid(at, key, "it must be the name of a label: "+strings.Join(why, "; ")))
		}
		value, ok := in[key].(string)
		if !ok {
			errs = append(errs, field.Invalid(at, in[key], "it must be a string; put it in quotes"))
			continue
		}
		if why := content.IsLabelValue(value); len(why) > 0 {
			errs = append(errs, field.Invalid(at, value, "it must be the value of a label: "+strings.Join(why, "; ")))
		}
		out[key] = value
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// number returns the number in a field, and the default where there is none.
func number(path *field.Path, value any, byDefault, lowest, highest float64) (float64, field.ErrorList) {
	var n float64
	switch x := value.(type) {
	case nil:
		return byDefault, nil
	case float64:
		n = x
	case uint64:
		n = float64(x)
	case int64:
		n = float64(x)
	default:
		return byDefault, field.ErrorList{field.Invalid(path, value, fmt.Sprintf("it must be a number from %v to %v, without quotes or a unit", lowest, highest))}
	}
	if !(n >= lowest && n <= highest) { // NaN is neither
		why := fmt.Sprintf("it must be a number from %v to %v", lowest, highest)
		if lowest == MinPrice && n == 0 {
			why += "; give nodes that cost nothing a small price, since 0 stands for an unknown one"
		}
		return byDefault, field.ErrorList{field.Invalid(path, printable(n), why)}
	}
	return n, nil
}

// printable returns a number as a field error can show it: NaN and infinities have no JSON.
func printable(n float64) any {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return fmt.Sprint(n)
	}
	return n
}

// ParsePrice reads a price an hour that stands by itself, such as in an annotation. The error says what
// would be accepted.
func ParsePrice(raw string) (float64, error) {
	price, err := strconv.ParseFloat(raw, 64)
	if err != nil || !(price >= MinPrice && price <= MaxPrice) {
		return 0, fmt.Errorf("it must be a number from %v to %v", MinPrice, MaxPrice)
	}
	return price, nil
}

// Text returns labels as people write them, sorted.
func Text(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, ",")
}
