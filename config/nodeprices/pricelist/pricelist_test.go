package pricelist_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/config/nodeprices"
	"github.com/berthproject/berth/config/nodeprices/pricelist"
)

// now is when the lists of testdata are read.
var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// imported returns the rules of lists of testdata as they are written, and the notes.
func imported(t *testing.T, source string, o pricelist.Options, files ...string) (rules, notes string) {
	t.Helper()
	for i := range files {
		files[i] = filepath.Join("testdata", files[i])
	}
	o.Now = now
	r, err := pricelist.Import(source, files, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, r), strings.Join(r.Notes, "\n")
}

// written returns the rules as they are written, and checks that they can be read back.
func written(t *testing.T, r *pricelist.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := nodeprices.Write(&b, r.Currency, r.Rules, "made by a test"); err != nil {
		t.Fatal(err)
	}
	p, err := nodeprices.Parse("prices.yaml", b.Bytes())
	if err != nil {
		t.Fatalf("what is written can't be read: %v\n%s", err, b.String())
	}
	if p.Rules() != len(r.Rules) || p.Currency != r.Currency {
		t.Errorf("%d rules in %s are read, want %d in %s", p.Rules(), p.Currency, len(r.Rules), r.Currency)
	}
	for i := range r.Rules {
		if price, ok := p.Of(r.Rules[i].Match); !ok || price != r.Rules[i].PricePerHour {
			t.Errorf("a node with the labels %v costs %v, want %v", r.Rules[i].Match, price, r.Rules[i].PricePerHour)
		}
	}
	head := "# made by a test\napiVersion: berth.dev/v1alpha1\nkind: NodePrices\n"
	text, ok := strings.CutPrefix(b.String(), head)
	if !ok {
		t.Errorf("the file begins with\n%s\nwant\n%s", b.String(), head)
	}
	return text
}

// TestLists reads the lists of each source as they are published.
func TestLists(t *testing.T) {
	const (
		region  = `topology.kubernetes.io/region`
		typ     = `node.kubernetes.io/instance-type`
		eksSpot = `eks.amazonaws.com/capacityType: "SPOT"`
	)
	onDemand := `currency: USD
rules:
- {match: {` + typ + `: "c7i.metal-24xl", ` + region + `: "eu-west-1"}, pricePerHour: 4.5864}
- {match: {` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1"}, pricePerHour: 0.2247}
- {match: {` + typ + `: "m7i.xlarge", ` + region + `: "us-east-1"}, pricePerHour: 0.2016}
`
	free := "no price, left out: u-6tb1.metal in eu-west-1 (a price of 0, sku 8NYGGXD4EAEJYFK3)"
	for name, x := range map[string]struct {
		source, rules, notes string
		options              pricelist.Options
		files                []string
	}{
		"the offer file":  {"aws", onDemand, free, pricelist.Options{}, []string{"aws-index.json"}},
		"the same as CSV": {"aws", onDemand, free, pricelist.Options{}, []string{"aws-index.csv"}},
		"an offer file, with spot prices by zone": {"aws", `currency: USD
rules:
- {match: {eks.amazonaws.com/capacityType: "SPOT", ` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1", topology.kubernetes.io/zone: "eu-west-1a"}, pricePerHour: 0.0871}
- {match: {eks.amazonaws.com/capacityType: "SPOT", ` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1", topology.kubernetes.io/zone: "eu-west-1b"}, pricePerHour: 0.0902}
- {match: {` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1"}, pricePerHour: 0.2247}
`, "", pricelist.Options{Regions: []string{"eu-west-1"}, InstanceTypes: []string{"m7i.*"}, Currency: "USD"}, []string{"aws-index.json", "aws-spot.json"}},
		"nodes with Windows come first": {"aws", `currency: USD
rules:
- {match: {kubernetes.io/os: "windows", ` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1"}, pricePerHour: 0.4087}
- {match: {` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1"}, pricePerHour: 0.2247}
- {match: {` + typ + `: "m7i.xlarge", ` + region + `: "us-east-1"}, pricePerHour: 0.2016}
`, "", pricelist.Options{InstanceTypes: []string{"m7i.xlarge"}, OS: []string{"linux", "windows"}}, []string{"aws-index.csv"}},
		"Karpenter's label of spot nodes": {"aws", `currency: USD
rules:
- {match: {karpenter.sh/capacity-type: "spot", ` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1", topology.kubernetes.io/zone: "eu-west-1a"}, pricePerHour: 0.0871}
- {match: {karpenter.sh/capacity-type: "spot", ` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1", topology.kubernetes.io/zone: "eu-west-1b"}, pricePerHour: 0.0902}
`, "", pricelist.Options{SpotLabel: "karpenter.sh/capacity-type=spot"}, []string{"aws-spot.json"}},
		"pages of Azure": {"azure", `currency: EUR
rules:
- {match: {kubernetes.azure.com/scalesetpriority: "spot", ` + typ + `: "Standard_D4ds_v5", ` + region + `: "westeurope"}, pricePerHour: 0.0433}
- {match: {` + typ + `: "Standard_D4ds_v5", ` + region + `: "northeurope"}, pricePerHour: 0.2304}
- {match: {` + typ + `: "Standard_D4ds_v5", ` + region + `: "westeurope"}, pricePerHour: 0.2208}
`, "no price, left out: Standard_ND9_v9 in westeurope (a price of 0, meter 006a)", pricelist.Options{}, []string{"azure-page-1.json", "azure-page-2.json"}},
		"one page of two": {"azure", `currency: EUR
rules:
- {match: {kubernetes.azure.com/scalesetpriority: "spot", ` + typ + `: "Standard_D4ds_v5", ` + region + `: "westeurope"}, pricePerHour: 0.0433}
- {match: {` + typ + `: "Standard_D4ds_v5", ` + region + `: "westeurope"}, pricePerHour: 0.2208}
`, "the list goes on: no file is the last page, and testdata/azure-page-1.json names another in NextPageLink; prices of the other pages are missing", pricelist.Options{}, []string{"azure-page-1.json"}},
		"Google's SKUs for machine types": {"gcp", `currency: USD
rules:
- {match: {` + typ + `: "a2-highgpu-1g", ` + region + `: "us-central1"}, pricePerHour: 3.673385}
- {match: {` + typ + `: "c2-standard-4", ` + region + `: "us-central1"}, pricePerHour: 0.208792}
- {match: {` + typ + `: "e2-micro", ` + region + `: "us-central1"}, pricePerHour: 0.00837575}
- {match: {` + typ + `: "f1-micro", ` + region + `: "us-central1"}, pricePerHour: 0.0076}
- {match: {` + typ + `: "n1-standard-1", ` + region + `: "us-central1"}, pricePerHour: 0.04749975}
- {match: {cloud.google.com/gke-spot: "true", ` + typ + `: "n2-standard-4", ` + region + `: "us-central1"}, pricePerHour: 0.04708}
- {match: {` + typ + `: "n2-standard-4", ` + region + `: "us-central1"}, pricePerHour: 0.194236}
`, "no price, left out: c3-standard-4-lssd in us-central1 (the list has no price of its local SSDs), t2d-standard-1 in us-central1 (the list has no price of t2d Ram)",
			pricelist.Options{}, []string{"gcp-machine-types.json", "gcp-skus.json"}},
		"a scrape of OpenCost": {"opencost", `currency: EUR
rules:
- {match: {` + typ + `: "c7i.xlarge", ` + region + `: "eu-west-1"}, pricePerHour: 0.12}
- {match: {` + eksSpot + `, ` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1"}, pricePerHour: 0.0871}
- {match: {` + typ + `: "m7i.xlarge", ` + region + `: "eu-west-1"}, pricePerHour: 0.2246987}
`, "2 nodes are c7i.xlarge in eu-west-1 and cost from 0.12 to 0.18; the median counts\n" +
			`no price, left out: node ip-10-0-4-1 in eu-west-1 (node_total_hourly_cost is 0, and its instance type "m9i.xlarge")`,
			pricelist.Options{Currency: "EUR"}, []string{"opencost.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, notes := imported(t, x.source, x.options, x.files...)
			if rules != x.rules {
				t.Errorf("the rules are\n%s\nwant\n%s", rules, x.rules)
			}
			if notes != x.notes {
				t.Errorf("the notes are\n%s\nwant\n%s", notes, x.notes)
			}
		})
	}
}

// edited returns a file of testdata with a text replaced.
func edited(t *testing.T, file, old, text string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	return strings.Replace(string(raw), old, text, 1)
}

// TestWhatIsWrongIsNamed has lists with each fault that there may be, and flags that suit no list.
func TestWhatIsWrongIsNamed(t *testing.T) {
	spot := func(price string) string {
		return `{"SpotPriceHistory": [{"AvailabilityZone": "eu-west-1a", "InstanceType": "m7i.xlarge", "ProductDescription": "Linux/UNIX", "SpotPrice": "` + price + `", "Timestamp": "2026-11-27T08:01:03Z"}]}`
	}
	const cost = `node_total_hourly_cost{node="a",instance_type="x",region="r"} `
	for name, x := range map[string]struct {
		source, text, want string
		options            pricelist.Options
	}{
		"a negative price":          {"aws", edited(t, "aws-index.json", `"USD": "0.2247000000"`, `"USD": "-0.2247"`), `sku 7NYGGXD4EAEJYFK8: the price of m7i.xlarge in eu-west-1 is "-0.2247": it must not be negative`, pricelist.Options{}},
		"no number":                 {"aws", spot("cheap"), `the price of m7i.xlarge in eu-west-1a, spot is "cheap": it must be a number`, pricelist.Options{}},
		"NaN":                       {"aws", spot("NaN"), `is "NaN": it must be a number`, pricelist.Options{}},
		"two prices of one kind":    {"aws", edited(t, "aws-index.json", `"regionCode": "us-east-1"`, `"regionCode": "eu-west-1"`), "m7i.xlarge in eu-west-1 has two prices: 0.2247 (sku 7NYGGXD4EAEJYFK8) and 0.2016 (sku 8NYGGXD4EAEJYFK2)", pricelist.Options{}},
		"two currencies":            {"aws", edited(t, "aws-index.json", `"USD": "0.2016000000"`, `"CNY": "0.2016"`), `sku 8NYGGXD4EAEJYFK2: the price is in "CNY", and sku 7NYGGXD4EAEJYFK8 is in USD: a price file has one currency`, pricelist.Options{}},
		"a price in two":            {"aws", edited(t, "aws-index.json", `"USD": "0.2247000000"`, `"USD": "0.2247", "CNY": "1.5"`), "sku 7NYGGXD4EAEJYFK8: there are prices in 2 currencies (CNY, USD); choose one with --currency", pricelist.Options{}},
		"another currency":          {"aws", edited(t, "aws-index.json", "{", "{"), `the price is in "USD", and --currency is EUR`, pricelist.Options{Currency: "EUR"}},
		"an unknown currency":       {"azure", strings.ReplaceAll(edited(t, "azure-page-1.json", "{", "{"), `"EUR"`, `"Euro"`), `the price list of azure is in "Euro", which is no ISO 4217 code`, pricelist.Options{}},
		"not whole":                 {"aws", edited(t, "aws-index.json", "{", "{")[:9000], "unexpected EOF", pricelist.Options{}},
		"a CSV that isn't whole":    {"aws", edited(t, "aws-index.csv", `,"GB-Mo"`, "\n"), "columns, want 41: the file isn't whole", pricelist.Options{}},
		"another CSV":               {"aws", "a,b\n1,2\n", "EOF", pricelist.Options{}},
		"another column":            {"aws", edited(t, "aws-index.csv", `"Tenancy"`, `"Hosts"`), `there is no column "Tenancy"`, pricelist.Options{}},
		"another JSON":              {"aws", `{"offers": {}}`, "there are neither products and terms", pricelist.Options{}},
		"terms first":               {"aws", `{"terms": {"OnDemand": {}}, "products": {}}`, "terms come before products", pricelist.Options{}},
		"an array":                  {"aws", `{"products": []}`, "there is [, want an object", pricelist.Options{}},
		"no SKUs":                   {"gcp", `[]`, "there are no SKUs of cores and memory", pricelist.Options{}},
		"no machine types":          {"gcp", edited(t, "gcp-skus.json", "{", "{"), "there are no machine types", pricelist.Options{}},
		"nanos below 0":             {"gcp", edited(t, "gcp-skus.json", `"nanos": 31611000`, `"nanos": -1`), "sku 0001-N2C: the price of n2 Core is 0 units and -1 nanos", pricelist.Options{}},
		"no pages":                  {"azure", `{"error": "throttled"}`, "there are no Items", pricelist.Options{}},
		"no metrics":                {"opencost", "up 1\n", "there is no node_total_hourly_cost", pricelist.Options{}},
		"a sample without value":    {"opencost", cost + "\n", "line 1: ", pricelist.Options{}},
		"a node twice":              {"opencost", cost + "1\n" + cost + "2\n", "node a is there twice, with node_total_hourly_cost 1 and 2", pricelist.Options{}},
		"a negative sample":         {"opencost", cost + "-1\n", "node a: node_total_hourly_cost is -1: it must not be negative", pricelist.Options{}},
		"a cloud that isn't known":  {"opencost", `kubecost_node_is_spot{node="a"} 1` + "\n" + cost + "1\n", `node a is a spot node, and its provider_id "" doesn't say of which cloud; give --spot-label`, pricelist.Options{}},
		"a region that isn't there": {"aws", edited(t, "aws-index.json", "{", "{"), `--region is "eu-west-9", which the list doesn't have; it has eu-west-1, us-east-1`, pricelist.Options{Regions: []string{"eu-west-9"}}},
		"a type that isn't there":   {"aws", edited(t, "aws-index.json", "{", "{"), `--instance-type is "m8i.xlarge", and the list has no such instance type`, pricelist.Options{InstanceTypes: []string{"m8i.xlarge"}}},
		"another system":            {"aws", "{}", `--os is "plan9"`, pricelist.Options{OS: []string{"plan9"}}},
		"a bad pattern":             {"aws", "{}", `--instance-type is "m7i.["`, pricelist.Options{InstanceTypes: []string{"m7i.["}}},
		"no label":                  {"aws", "{}", `--spot-label is "spot"; it must be a label`, pricelist.Options{SpotLabel: "spot"}},
		"no currency":               {"aws", "{}", `--currency is "usd"; it must be an ISO 4217 code`, pricelist.Options{Currency: "usd"}},
		"another source":            {"oracle", "{}", `there are no price lists of "oracle"; it must be aws, azure, gcp, opencost`, pricelist.Options{}},
		"nothing":                   {"aws", " \n", "the file is empty", pricelist.Options{}},
		"compressed":                {"aws", "\x1f\x8b\b", "gunzip -c FILE | berth prices import aws -", pricelist.Options{}},
		"a name that is no label":   {"azure", edited(t, "azure-page-1.json", `"Standard_D4ds_v5"`, `"D4 ds"`), `meter 000a794b: "D4 ds" can't be the value of the label node.kubernetes.io/instance-type`, pricelist.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			x.options.Now = now
			_, err := pricelist.Import(x.source, []string{"-"}, strings.NewReader(x.text), x.options)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("the error is %v, want one with %q", err, x.want)
			}
		})
	}
}

// TestGapsAreNamed: an instance type that a region doesn't have, and one that isn't sold on demand.
func TestGapsAreNamed(t *testing.T) {
	o := pricelist.Options{Regions: []string{"eu-west-1", "us-east-1"}, InstanceTypes: []string{"c7i.metal-24xl", "m7i.xlarge"}, Now: now}
	text := edited(t, "aws-index.json", `"8NYGGXD4EAEJYFK2": {
    "8NYGGXD4EAEJYFK2.JRTCKXETXF"`, `"SOMETHINGELSE": {
    "8NYGGXD4EAEJYFK2.JRTCKXETXF"`)
	r, err := pricelist.Import("aws", []string{"-"}, strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	want := "no price, left out: c7i.metal-24xl in us-east-1 (not in the list), m7i.xlarge in us-east-1 (no on-demand price, sku 8NYGGXD4EAEJYFK2)"
	if got := strings.Join(r.Notes, "\n"); got != want {
		t.Errorf("the notes are\n%s\nwant\n%s", got, want)
	}
}

// longList is an offer file with many products that nobody asks for, made as it is read.
type longList struct {
	pending bytes.Buffer
	made    int // products
	stage   int
	// read is how many bytes were read, and heap the most memory in use meanwhile.
	read int
	heap uint64
}

// products is how many products a long list has.
const products = 100_000

func (l *longList) Read(p []byte) (int, error) {
	for l.pending.Len() == 0 {
		l.next()
	}
	n, err := l.pending.Read(p)
	if l.read>>22 != (l.read+n)>>22 { // each 4 MiB
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		l.heap = max(l.heap, m.HeapAlloc)
	}
	l.read += n
	return n, err
}

// next makes the next piece.
func (l *longList) next() {
	const product = `{"sku": "%[1]s", "productFamily": "Compute Instance", "attributes": {"locationType": "AWS Region", "regionCode": "us-east-1", "instanceType": "x%[2]d.large", "tenancy": "Shared", "operatingSystem": "Linux", "licenseModel": "No License required", "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand", "memory": "16 GiB", "networkPerformance": "Up to 12500 Megabit"}}`
	const term = `{"%[1]s.T": {"effectiveDate": "2026-11-01T00:00:00Z", "priceDimensions": {"%[1]s.T.R": {"unit": "Hrs", "pricePerUnit": {"USD": "0.1"}}}}}`
	sku := fmt.Sprintf("SKU%09d", l.made)
	switch l.stage {
	case 0:
		l.pending.WriteString(`{"products": {"S": {}`)
		l.stage++
	case 1, 3:
		body := term
		if l.stage == 1 {
			body = product
		}
		fmt.Fprintf(&l.pending, `, "%s": `, sku)
		l.pending.WriteString(strings.NewReplacer("%[1]s", sku, "%[2]d", fmt.Sprint(l.made)).Replace(body))
		if l.made++; l.made == products {
			l.made, l.stage = 0, l.stage+1
		}
	case 2:
		l.pending.WriteString(`}, "terms": {"OnDemand": {"S": {}`)
		l.stage++
	case 4:
		l.pending.WriteString(`}, "Reserved": {"S": {}`)
		l.stage++
	default: // without an end
		l.pending.WriteString(`, "S": {}`)
	}
}

// TestMemoryIsBoundedByWhatIsWanted reads a list of some 60 MB with one wanted product, and none of the reserved terms
// behind, which have no end.
func TestMemoryIsBoundedByWhatIsWanted(t *testing.T) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	list := &longList{}
	r, err := pricelist.Import("aws", []string{"-"}, list, pricelist.Options{InstanceTypes: []string{"x777.large"}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rules) != 1 || r.Rules[0].PricePerHour != 0.1 {
		t.Errorf("the rules are %v, want one", r.Rules)
	}
	if list.read < 40<<20 {
		t.Errorf("the list has %d bytes; is it long?", list.read)
	}
	if grown := int64(list.heap) - int64(m.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes of memory were in use for one product of %d", grown, products)
	}
}

// huge is a value of 64 MiB, without an end.
type huge struct{ read int }

func (h *huge) Read(p []byte) (int, error) {
	if h.read > 64<<20 {
		return 0, io.EOF
	}
	n := copy(p, `{"products": {"A": {"sku": "`)
	if h.read > 0 {
		n = copy(p, strings.Repeat("x", len(p)))
	}
	h.read += n
	return n, nil
}

// TestAValueWithoutEndIsRefused: it is refused before all of it was read.
func TestAValueWithoutEndIsRefused(t *testing.T) {
	_, err := pricelist.Import("aws", []string{"-"}, &huge{}, pricelist.Options{Now: now})
	if want := "a value has more than 16777216 bytes"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
	_, err = pricelist.Import("aws", []string{"-"}, failing{}, pricelist.Options{Now: now})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the error is %v, want that of the reader", err)
	}
}

// failing can't be read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestTooManyRulesAreRefused: a list of everything is more than a price file may have.
func TestTooManyRulesAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"SpotPriceHistory": [`)
	for i := range 10_001 {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"AvailabilityZone": "eu-west-1a", "InstanceType": "x%d", "ProductDescription": "Linux/UNIX", "SpotPrice": "1", "Timestamp": "2026-11-27T08:01:03Z"}`, i)
	}
	b.WriteString("]}")
	_, err := pricelist.Import("aws", []string{"-"}, strings.NewReader(b.String()), pricelist.Options{Now: now})
	if want := "makes 10001 rules, and a price file may have 10000; choose with --region and --instance-type"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

// TestPropertyTheLatestSpotPriceHolds reads histories of spot prices in any order. Of each zone the latest price counts
// that isn't in the future.
func TestPropertyTheLatestSpotPriceHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"eu-west-1a", "eu-west-1b", "us-west-2-lax-1a"})
		type entry struct {
			zone  string
			hours int // before now
		}
		entries := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) entry {
			return entry{zone.Draw(t, "zone"), rapid.IntRange(-3, 9).Draw(t, "hours")}
		}), 1, 12, func(e entry) entry { return e }).Draw(t, "entries")
		var list []string
		want := map[string]int{}
		for _, e := range entries {
			list = append(list, fmt.Sprintf(`{"AvailabilityZone": %q, "InstanceType": "x", "ProductDescription": "Linux/UNIX", "SpotPrice": "%d", "Timestamp": %q}`,
				e.zone, e.hours+10, now.Add(-time.Duration(e.hours)*time.Hour).Format(time.RFC3339)))
			if old, ok := want[e.zone]; e.hours >= 0 && (!ok || e.hours+10 < old) {
				want[e.zone] = e.hours + 10
			}
		}
		r, err := pricelist.Import("aws", []string{"-"}, strings.NewReader(`{"SpotPriceHistory": [`+strings.Join(list, ",")+"]}"), pricelist.Options{Now: now})
		if len(want) == 0 {
			if err == nil {
				t.Fatalf("prices of the future make the rules %v", r.Rules)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, rule := range r.Rules {
			got[rule.Match["topology.kubernetes.io/zone"]] = int(rule.PricePerHour)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("the prices are %v, want %v", got, want)
		}
	})
}

// FuzzImport reads any text as a list of each source. What is accepted can be read as a price file.
func FuzzImport(f *testing.F) {
	for i, file := range []string{"aws-index.json", "aws-index.csv", "aws-spot.json", "azure-page-1.json", "gcp-skus.json", "opencost.txt"} {
		raw, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), raw)
	}
	f.Fuzz(func(t *testing.T, source uint8, raw []byte) {
		name := pricelist.Sources()[int(source)%len(pricelist.Sources())]
		r, err := pricelist.Import(name, []string{"-"}, bytes.NewReader(raw), pricelist.Options{Now: now})
		if err == nil {
			written(t, r)
		}
	})
}
