package pricelist

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/berthproject/berth/config/nodeprices"
)

// The labels of rules.
const (
	labelType   = "node.kubernetes.io/instance-type"
	labelRegion = "topology.kubernetes.io/region"
	labelZone   = "topology.kubernetes.io/zone"
	labelOS     = "kubernetes.io/os"
)

// The operating systems of nodes.
const (
	Linux   = "linux"
	Windows = "windows"
)

// Options say what is wanted of a list.
type Options struct {
	// Regions are the regions; empty means all.
	Regions []string
	// InstanceTypes are patterns as of path.Match; empty means all instance types.
	InstanceTypes []string
	// OS are Linux, Windows or both; empty means Linux.
	OS []string
	// SpotLabel is the label KEY=VALUE of spot nodes; "" means that of the cloud's own node groups.
	SpotLabel string
	// Currency is the ISO 4217 code that all prices must have; "" means the list's. Metrics of OpenCost don't
	// have any: there it is the currency of the prices, USD when it is "".
	Currency string
	// Now is when the prices are to hold.
	Now time.Time
}

// Validate refuses what no list could answer. Errors name the flags of berth prices import.
func (o *Options) Validate() error {
	for _, name := range o.OS {
		if name != Linux && name != Windows {
			return fmt.Errorf("--os is %q; it must be linux, windows or both, separated by a comma", name)
		}
	}
	for _, pattern := range o.InstanceTypes {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("--instance-type is %q; it must be an instance type or a pattern such as m7i.*", pattern)
		}
	}
	if key, value, ok := strings.Cut(o.SpotLabel, "="); o.SpotLabel != "" && (!ok || len(content.IsLabelKey(key)) > 0 || len(content.IsLabelValue(value)) > 0) {
		return fmt.Errorf("--spot-label is %q; it must be a label, such as karpenter.sh/capacity-type=spot", o.SpotLabel)
	}
	if o.Currency != "" && !nodeprices.IsCurrency(o.Currency) {
		return fmt.Errorf("--currency is %q; it must be an ISO 4217 code in capitals, such as USD, EUR or JPY", o.Currency)
	}
	return nil
}

// has reports whether nodes with an operating system are wanted.
func (o *Options) has(name string) bool {
	return slices.Contains(o.OS, name) || len(o.OS) == 0 && name == Linux
}

// Result is what was found in a list.
type Result struct {
	Currency string
	// Rules are those of a price file: none is behind one that matches all of its nodes.
	Rules []nodeprices.Rule
	// Notes are what a reader should know: nodes without a price, and parts that are missing.
	Notes []string
}

// source is who publishes a list.
type source struct {
	name string
	// spotLabel is that of spot nodes in the cloud's own node groups.
	spotLabel string
	// read reads one file. Faults of the list are the table's; an error is one of reading.
	read func(t *table, in *bufio.Reader, name string) error
	// finish, if not nil, is called when all files were read.
	finish func(t *table)
}

// sources returns a source by its name. Each has a state of its own.
func sourceOf(name string) (*source, error) {
	switch name {
	case "aws":
		return newAWS(), nil
	case "azure":
		return newAzure(), nil
	case "gcp":
		return newGCP(), nil
	case "opencost":
		return newOpenCost(), nil
	}
	return nil, fmt.Errorf("there are no price lists of %q; it must be %s", name, strings.Join(Sources(), ", "))
}

// Sources are the names of those whose lists can be read.
func Sources() []string { return []string{"aws", "azure", "gcp", "opencost"} }

// Import reads the price lists of a source from files, "-" for stdin. The error joins what is wrong with them,
// one a line.
func Import(name string, files []string, stdin io.Reader, o Options) (*Result, error) {
	s, err := sourceOf(name)
	if err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := newTable(s, &o)
	for _, file := range files {
		if err := readFile(t, file, stdin); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
	}
	if s.finish != nil {
		s.finish(t)
	}
	if err := t.refusal(); err != nil {
		return nil, fmt.Errorf("the price list of %s (%s):\n%w", name, strings.Join(files, ", "), err)
	}
	return t.result()
}

// readFile reads one file of a list.
func readFile(t *table, file string, stdin io.Reader) error {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // nothing was written
		in = f
	}
	buffered := bufio.NewReaderSize(in, 1<<16)
	first, err := firstByte(buffered)
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty")
	}
	if err != nil {
		return err
	}
	if first == 0x1f {
		return errors.New("the file is compressed; pipe it: gunzip -c FILE | berth prices import " + t.source.name + " -")
	}
	err = t.source.read(t, buffered, file)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// firstByte returns the first byte that isn't space, and leaves it to be read.
func firstByte(in *bufio.Reader) (byte, error) {
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = in.Discard(3)
	}
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b)) {
			return b, in.UnreadByte()
		}
	}
}

// result returns the rules of what was read.
func (t *table) result() (*Result, error) {
	out := &Result{Currency: t.currency, Notes: t.summary()}
	for k, o := range t.offers {
		if !o.usable() {
			continue
		}
		match, err := t.labels(k)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.where, err)
		}
		out.Rules = append(out.Rules, nodeprices.Rule{Match: match, PricePerHour: o.price})
	}
	switch n := len(out.Rules); {
	case n == 0:
		return nil, fmt.Errorf("the price list of %s has no price that was asked for; %s", t.source.name, strings.Join(append(out.Notes, "check --region, --instance-type and --os"), "; "))
	case n > nodeprices.MaxRules:
		return nil, fmt.Errorf("the price list of %s makes %d rules, and a price file may have %d; choose with --region and --instance-type", t.source.name, n, nodeprices.MaxRules)
	case !nodeprices.IsCurrency(t.currency):
		return nil, fmt.Errorf("the price list of %s is in %q, which is no ISO 4217 code", t.source.name, t.currency)
	}
	// A rule with more labels can only be hidden by one with fewer.
	slices.SortFunc(out.Rules, func(a, b nodeprices.Rule) int {
		return cmp.Or(cmp.Compare(a.Match[labelType], b.Match[labelType]), cmp.Compare(len(b.Match), len(a.Match)), cmp.Compare(nodeprices.Text(a.Match), nodeprices.Text(b.Match)))
	})
	return out, nil
}

// labels returns the labels of the nodes of a kind.
func (t *table) labels(k kind) (map[string]string, error) {
	out := map[string]string{labelType: k.instanceType}
	if k.region != "" {
		out[labelRegion] = k.region
	}
	if k.zone != "" {
		out[labelZone] = k.zone
	}
	if k.windows {
		out[labelOS] = Windows
	}
	if k.spot {
		key, value, _ := strings.Cut(cmp.Or(t.opts.SpotLabel, t.source.spotLabel), "=")
		out[key] = value
	}
	for key, value := range out {
		if why := content.IsLabelValue(value); len(why) > 0 || value == "" {
			return nil, fmt.Errorf("%q can't be the value of the label %s", value, key)
		}
	}
	return out, nil
}
