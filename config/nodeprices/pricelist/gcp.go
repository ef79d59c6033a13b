package pricelist

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// This file reads pages of Google's Cloud Billing Catalog
// (https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus), whose SKUs price cores, memory and
// GPUs, and what gcloud compute machine-types list --format=json prints, which says what a machine has of them.
// Unlike the other clouds Google sells parts: a machine's price is the sum over its cores,
// memory and GPUs.

// gcpSKU is a SKU of the catalog.
// What it is a price of stands in the description only, in words for people.
type gcpSKU struct {
	ID          string `json:"skuId"`
	Description string `json:"description"`
	Category    struct {
		ResourceFamily string `json:"resourceFamily"`
		ResourceGroup  string `json:"resourceGroup"`
		UsageType      string `json:"usageType"`
	} `json:"category"`
	Regions     []string `json:"serviceRegions"`
	PricingInfo []struct {
		EffectiveTime time.Time `json:"effectiveTime"`
		Expression    struct {
			UsageUnit string `json:"usageUnit"`
			Rates     []struct {
				UnitPrice struct {
					CurrencyCode string      `json:"currencyCode"`
					Units        json.Number `json:"units"` // written as a string
					Nanos        int64       `json:"nanos"`
				} `json:"unitPrice"`
			} `json:"tieredRates"`
		} `json:"pricingExpression"`
	} `json:"pricingInfo"`
}

// gcpMachine is a machine type in a zone.
// The list has a machine type once for each zone; prices are by region.
type gcpMachine struct {
	Name         string `json:"name"`
	Zone         string `json:"zone"`
	GuestCPUs    int    `json:"guestCpus"`
	MemoryMB     int    `json:"memoryMb"`
	Accelerators []struct {
		Count int    `json:"guestAcceleratorCount"`
		Type  string `json:"guestAcceleratorType"`
	} `json:"accelerators"`
}

// gcpPart is what a SKU prices: an hour of a core, of a GiB, of a GPU or of a whole machine, by region.
type gcpPart struct {
	what   string // "n2 Core", "n2 Ram", "gpu l4" or the name of a machine type
	region string
	spot   bool
}

// String returns a part as people write it.
func (p gcpPart) String() string {
	if p.spot {
		return p.what + " in " + p.region + ", spot"
	}
	return p.what + " in " + p.region
}

// gcp is the state of reading lists of Google Cloud.
// SKUs and machine types may come in any order, so machines are priced when all files are
// read (finish).
type gcp struct {
	*table
	parts    offers[gcpPart]
	machines map[kind]gcpMachine
	listed   bool // machine types were read
	pages    pages
}

func newGCP() *source {
	g := &gcp{parts: offers[gcpPart]{}, machines: map[kind]gcpMachine{}}
	return &source{
		name: "gcp", spotLabel: "cloud.google.com/gke-spot=true",
		read: func(t *table, in *bufio.Reader, name string) error {
			g.table = t
			return g.readFile(in, name)
		},
		finish: func(*table) { g.finish() },
	}
}

// readFile reads a page of SKUs, or machine types.
func (g *gcp) readFile(in *bufio.Reader, name string) error {
	s := newStream(in)
	if first, _ := firstByte(in); first == '[' {
		g.listed = true
		return s.array(func() error { return g.machine(s) })
	}
	known := false
	next := ""
	err := s.object(func(key string) error {
		switch key {
		case "skus":
			known = true
			return s.array(func() error { return g.sku(s) })
		case "nextPageToken":
			return s.decode(&next)
		}
		return s.skip()
	})
	if err == nil && !known {
		return errors.New("there are neither skus (the Cloud Billing Catalog) nor is it an array of machine types (gcloud compute machine-types list --format=json)")
	}
	// A catalog that isn't whole would have gaps that look like missing prices: pages.check
	// refuses it.
	g.pages.add(name, next)
	return err
}

// machine reads a machine type.
func (g *gcp) machine(s *stream) error {
	var m gcpMachine
	if err := s.decode(&m); err != nil {
		return err
	}
	// The region is what comes before the last dash.
	zone := path.Base(m.Zone) // may be an address
	end := strings.LastIndexByte(zone, '-')
	if end < 0 || m.Name == "" {
		return fmt.Errorf("a machine type has the name %q and the zone %q", m.Name, m.Zone)
	}
	if g.wants(m.Name, zone[:end]) {
		g.machines[kind{instanceType: m.Name, region: zone[:end]}] = m
	}
	return nil
}

var (
	// gcpCore are the descriptions of cores and memory of predefined machine types. Those of custom machine
	// types, sole tenancy and premiums have other words in between.
	gcpCore = regexp.MustCompile(`^(?:Spot Preemptible |Preemptible )?(?:(Compute optimized|Memory-optimized)|([A-Z][0-9]+[A-Z]*)(?: (?:Predefined|AMD|Arm|Memory-optimized))?)(?: Instance)? (Core|Ram) running in `)
	gcpGPU  = regexp.MustCompile(`^Nvidia (?:Tesla )?(.+?) GPU (?:attached to (?:Spot Preemptible|Preemptible) VMs )?running in `)
)

// gcpFamilies are the families whose descriptions don't have their names.
var gcpFamilies = map[string]string{"Compute optimized": "c2", "Memory-optimized": "m1"}

// gcpWhole are the machine types that have a SKU of their own, by resource group.
var gcpWhole = map[string]string{"F1Micro": "f1-micro", "G1Small": "g1-small"}

// part returns what a SKU prices, "" for nothing that nodes are made of.
// Descriptions that match nothing are of disks, networks, licenses and so on.
func (k *gcpSKU) part() (what, unit string) {
	if name := gcpWhole[k.Category.ResourceGroup]; name != "" {
		return name, "h"
	}
	if m := gcpCore.FindStringSubmatch(k.Description); m != nil {
		unit = map[string]string{"Core": "h", "Ram": "GiBy.h"}[m[3]]
		return cmp.Or(gcpFamilies[m[1]], strings.ToLower(m[2])) + " " + m[3], unit
	}
	if m := gcpGPU.FindStringSubmatch(k.Description); m != nil && k.Category.ResourceGroup == "GPU" {
		return "gpu " + gpuSlug(m[1]), "h"
	}
	return "", ""
}

// gpuSlug makes names of GPUs comparable: A100 80GB of a SKU, and nvidia-a100-80gb of a machine type.
func gpuSlug(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), " ", "-")
	return strings.TrimPrefix(strings.TrimPrefix(name, "nvidia-"), "tesla-")
}

// sku reads a SKU.
// SKUs of commitments and reservations are left out, like those of other services.
func (g *gcp) sku(s *stream) error {
	var k gcpSKU
	if err := s.decode(&k); err != nil {
		return err
	}
	usage := k.Category.UsageType
	what, unit := k.part()
	if what == "" || k.Category.ResourceFamily != "Compute" || usage != "OnDemand" && usage != "Preemptible" || len(k.PricingInfo) == 0 {
		return nil
	}
	info := k.PricingInfo[len(k.PricingInfo)-1] // in the order of time
	rates := info.Expression.Rates
	where := "sku " + k.ID
	if info.Expression.UsageUnit != unit || len(rates) == 0 {
		// A unit other than an hour or a GiB-hour would give a wrong sum.
		g.notes = append(g.notes, fmt.Sprintf("%s (%s) has no price by %s, and isn't used", where, k.Description, unit))
		return nil
	}
	rate := rates[len(rates)-1].UnitPrice // the earlier ones are of a free tier
	if !g.currencyIs(rate.CurrencyCode, where) {
		return nil
	}
	// A price is whole units and billionths.
	units, err := number(cmp.Or(rate.Units.String(), "0"))
	if err != nil || rate.Nanos < 0 || rate.Nanos >= 1e9 {
		g.fault(fmt.Errorf("%s: the price of %s is %s units and %d nanos; neither may be negative", where, what, rate.Units, rate.Nanos))
		return nil
	}
	price := units + float64(rate.Nanos)/1e9
	if price == 0 {
		return nil // GPUs that were reserved
	}
	for _, region := range k.Regions {
		g.regions[region] = true
		// Two SKUs of one part with different prices are a fault: which one holds can't be
		// known.
		if err := g.parts.add(gcpPart{what, region, usage == "Preemptible"}, offer{price: price, since: info.EffectiveTime, where: where}); err != nil {
			g.fault(err)
		}
	}
	return nil
}

// finish prices the machine types.
// A machine type without spot prices at all isn't a gap: not every type is sold as spot.
func (g *gcp) finish() {
	g.pages.check(g.table, "nextPageToken")
	if len(g.parts) == 0 {
		g.fault(errors.New("there are no SKUs of cores and memory: give the pages of https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus, too"))
	}
	if !g.listed {
		g.fault(errors.New("there are no machine types, and SKUs price only their cores and memory: give what gcloud compute machine-types list --format=json prints, too"))
	}
	for k, m := range g.machines {
		for _, spot := range []bool{false, true} {
			k.spot = spot
			price, missing, found := g.price(&m, k)
			if len(missing) == 0 {
				g.offers[k] = offer{price: price, where: "machine type " + m.Name}
			} else if !spot || found {
				g.gap(k, "the list has no price of "+strings.Join(missing, " and of "))
			}
		}
	}
}

// sharedCores is what machine types with shared cores pay of their cores.
// Their guests see two cores and pay for a fraction.
var sharedCores = map[string]float64{"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1}

// price returns what a machine type costs an hour, the parts of it that have no price, and whether any has.
// It is rounded to billionths, as sums of floats differ in the last digits.
func (g *gcp) price(m *gcpMachine, k kind) (price float64, missing []string, found bool) {
	add := func(what string, n float64) {
		o, ok := g.parts[gcpPart{what, k.region, k.spot}]
		if !ok {
			missing = append(missing, what)
			return
		}
		price, found = price+o.price*n, true
	}
	for _, whole := range gcpWhole {
		if whole == m.Name {
			add(whole, 1)
			return price, missing, found
		}
	}
	// Local SSDs aren't in what machine types list, so the sum would be too low.
	if strings.HasSuffix(m.Name, "-lssd") || strings.HasPrefix(m.Name, "z3-") {
		return 0, []string{"its local SSDs"}, !k.spot
	}
	family, _, _ := strings.Cut(m.Name, "-")
	cores, shared := sharedCores[m.Name]
	if !shared {
		cores = float64(m.GuestCPUs)
	}
	add(family+" Core", cores)
	add(family+" Ram", float64(m.MemoryMB)/1024)
	for _, a := range m.Accelerators {
		add("gpu "+gpuSlug(a.Type), float64(a.Count))
	}
	price, _ = strconv.ParseFloat(strconv.FormatFloat(price, 'f', 9, 64), 64) // the list has nanos
	return price, missing, found
}
