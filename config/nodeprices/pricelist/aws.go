package pricelist

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file reads the lists of AWS: offers/v1.0/aws/AmazonEC2/…/index.json or index.csv, and what
// aws ec2 describe-spot-price-history prints. Offer files have no spot prices.

// awsProduct is a product of an offer file.
// Offer files have hundreds of thousands, most of them of no interest here (kindOf).
type awsProduct struct {
	SKU        string        `json:"sku"`
	Family     string        `json:"productFamily"`
	Attributes awsAttributes `json:"attributes"`
}

// awsAttributes are what tells apart the products of one instance type.
type awsAttributes struct {
	LocationType    string `json:"locationType"`
	Region          string `json:"regionCode"`
	InstanceType    string `json:"instanceType"`
	Tenancy         string `json:"tenancy"`
	OperatingSystem string `json:"operatingSystem"`
	LicenseModel    string `json:"licenseModel"`
	Software        string `json:"preInstalledSw"`
	CapacityStatus  string `json:"capacitystatus"`
	MarketOption    string `json:"marketoption"`
	UsageType       string `json:"usagetype"`
}

// awsTerm is what a product costs under an offer.
type awsTerm struct {
	EffectiveDate   time.Time `json:"effectiveDate"`
	PriceDimensions map[string]struct {
		Unit         string            `json:"unit"`
		BeginRange   string            `json:"beginRange"`
		PricePerUnit map[string]string `json:"pricePerUnit"` // by currency
	} `json:"priceDimensions"`
}

// aws is the state of reading lists of AWS.
type aws struct {
	*table
	// skus are the products whose terms are wanted, until their file is read.
	skus map[string]kind
}

// The two forms are told apart by their first byte.
func newAWS() *source {
	return &source{name: "aws", spotLabel: "eks.amazonaws.com/capacityType=SPOT", read: func(t *table, in *bufio.Reader, name string) error {
		a := &aws{table: t}
		if first, _ := firstByte(in); first == '{' {
			return a.readJSON(newStream(in))
		}
		return a.readCSV(in)
	}}
}

// readJSON reads an offer file, or a history of spot prices.
// The file has gigabytes and is read as a stream; products come first, so one pass is
// enough.
func (a *aws) readJSON(s *stream) error {
	known := false
	err := s.object(func(key string) error {
		switch key {
		case "products":
			known, a.skus = true, map[string]kind{}
			return s.object(func(string) error { return a.product(s) })
		case "terms":
			if !known {
				return errors.New("terms come before products, other than in the offer files of AWS")
			}
			return a.terms(s)
		case "SpotPriceHistory":
			known = true
			return s.array(func() error { return a.spotPrice(s) })
		}
		return s.skip()
	})
	if err == nil && !known {
		return errors.New("there are neither products and terms (an offer file of AmazonEC2) nor SpotPriceHistory (aws ec2 describe-spot-price-history)")
	}
	return err
}

// product reads a product.
// Only wanted products are kept in memory.
func (a *aws) product(s *stream) error {
	var p awsProduct
	if err := s.decode(&p); err != nil {
		return err
	}
	if k, ok := a.kindOf(&p); ok {
		a.skus[p.SKU] = k
	}
	return nil
}

// kindOf returns the kind of nodes that a product is, and whether it is wanted: instances on shared hardware that
// are paid for while they run, with no software but the operating system.
// Instances that run under a license of their own, on dedicated hosts, or that stand idle
// in a reservation are other products with the same type.
func (a *aws) kindOf(p *awsProduct) (k kind, ok bool) {
	at := &p.Attributes
	windows := at.OperatingSystem == "Windows"
	switch {
	case p.Family != "Compute Instance" && p.Family != "Compute Instance (bare metal)",
		at.LocationType != "AWS Region", // Local Zones and Wavelength have the region's name in a label, and other prices
		at.Tenancy != "Shared",
		at.Software != "NA",
		at.CapacityStatus != "Used",
		at.MarketOption != "OnDemand" && at.MarketOption != "",
		at.LicenseModel != "No License required",
		at.OperatingSystem != "Linux" && !windows:
		return k, false
	case windows && !a.opts.has(Windows), !windows && !a.opts.has(Linux), !a.wants(at.InstanceType, at.Region):
		return k, false
	}
	return kind{instanceType: at.InstanceType, region: at.Region, windows: windows}, true
}

// terms reads what products cost on demand. Reserved terms come behind, and most of a file; they aren't read.
func (a *aws) terms(s *stream) error {
	return s.object(func(termType string) error {
		if termType != "OnDemand" {
			return s.skip()
		}
		err := s.object(func(sku string) error { return a.term(s, sku) })
		if err != nil {
			return err
		}
		// Products whose terms didn't come are left in skus.
		for _, sku := range slices.Sorted(maps.Keys(a.skus)) {
			a.gap(a.skus[sku], "no on-demand price, sku "+sku)
		}
		return errEnough
	})
}

// term reads the on-demand terms of a product.
func (a *aws) term(s *stream, sku string) error {
	k, ok := a.skus[sku]
	if !ok {
		return s.decode(&unread{})
	}
	var terms map[string]awsTerm
	if err := s.decode(&terms); err != nil {
		return err
	}
	where := "sku " + sku
	// In a fixed order, so that notes don't change from run to run.
	for _, code := range slices.Sorted(maps.Keys(terms)) {
		term := terms[code]
		for _, rate := range slices.Sorted(maps.Keys(term.PriceDimensions)) {
			d := term.PriceDimensions[rate]
			// Some products are priced by other units, which don't make an hourly price.
			if d.Unit != "Hrs" {
				a.gap(k, fmt.Sprintf("priced by %s, %s", d.Unit, where))
				continue
			}
			if price, currency, ok := a.inCurrency(d.PricePerUnit, where); ok {
				a.add(k, price, currency, offer{since: term.EffectiveDate, where: where})
			}
		}
	}
	delete(a.skus, sku)
	return nil
}

// inCurrency returns the price in the only currency there is, or in that of --currency.
// Files of the China regions have other currencies.
func (a *aws) inCurrency(prices map[string]string, where string) (price, currency string, ok bool) {
	if price, ok = prices[a.opts.Currency]; ok {
		return price, a.opts.Currency, true
	}
	if len(prices) != 1 {
		// A fault fails the import, unlike a gap, which is noted: a choice of the user's is
		// missing.
		a.fault(fmt.Errorf("%s: there are prices in %d currencies (%s); choose one with --currency", where, len(prices), shown(slices.Sorted(maps.Keys(prices)))))
		return "", "", false
	}
	for currency, price = range prices {
	}
	return price, currency, true
}

// awsColumns are the columns of index.csv that are read. The text before has the file's format and date.
var awsColumns = []string{"SKU", "TermType", "EffectiveDate", "Unit", "PricePerUnit", "Currency", "Product Family", "Location Type", "Region Code",
	"Instance Type", "Tenancy", "Operating System", "License Model", "Pre Installed S/W", "CapacityStatus", "MarketOption"}

// readCSV reads an offer file in which each line is a product under a term.
// Each line repeats what the product is, so nothing has to be kept.
func (a *aws) readCSV(in io.Reader) error {
	r := csv.NewReader(in)
	// The lines of the head have other numbers of columns; rows are checked below.
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	at, columns, err := awsHeader(r)
	if err != nil {
		return err
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(row) != columns {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d has %d columns, want %d: the file isn't whole", line, len(row), columns)
		}
		a.row(func(name string) string { return row[at[name]] })
	}
}

// awsHeader reads up to the line that names the columns, and returns where they are and how many.
// The head has a few lines of its own; ten are more than enough.
func awsHeader(r *csv.Reader) (at map[string]int, columns int, err error) {
	for range 10 {
		row, err := r.Read()
		if err != nil {
			return nil, 0, err
		}
		if row[0] != "SKU" {
			continue
		}
		at = map[string]int{}
		for i, name := range row {
			at[name] = i
		}
		for _, name := range awsColumns {
			if _, ok := at[name]; !ok {
				return nil, 0, fmt.Errorf("there is no column %q, which the offer files of AmazonEC2 have", name)
			}
		}
		return at, len(row), nil
	}
	return nil, 0, errors.New("it is neither JSON nor the CSV of an offer file of AmazonEC2: no line begins with SKU")
}

// row takes a line of index.csv.
// Reserved terms are most of the file and left out first.
func (a *aws) row(get func(column string) string) {
	if get("TermType") != "OnDemand" {
		return
	}
	k, ok := a.kindOf(&awsProduct{Family: get("Product Family"), Attributes: awsAttributes{
		LocationType: get("Location Type"), Region: get("Region Code"), InstanceType: get("Instance Type"), Tenancy: get("Tenancy"),
		OperatingSystem: get("Operating System"), LicenseModel: get("License Model"), Software: get("Pre Installed S/W"),
		CapacityStatus: get("CapacityStatus"), MarketOption: get("MarketOption")}})
	if !ok {
		return
	}
	where := "sku " + get("SKU")
	if unit := get("Unit"); unit != "Hrs" {
		a.gap(k, fmt.Sprintf("priced by %s, %s", unit, where))
		return
	}
	since, _ := time.Parse(time.DateOnly, get("EffectiveDate")) // zero counts as for ever
	a.add(k, get("PricePerUnit"), get("Currency"), offer{since: since, where: where})
}

// awsRegion is the region in the name of a zone: us-west-2 of us-west-2a and of us-west-2-lax-1a.
// The history names zones only.
var awsRegion = regexp.MustCompile(`^[a-z]+(?:-[a-z]+)+-[0-9]+`)

// spotPrice reads a price of a history of spot prices. The latest of a zone counts.
func (a *aws) spotPrice(s *stream) error {
	var p struct {
		AvailabilityZone, InstanceType, ProductDescription, SpotPrice string
		Timestamp                                                     time.Time
	}
	if err := s.decode(&p); err != nil {
		return err
	}
	windows := p.ProductDescription == "Windows" || p.ProductDescription == "Windows (Amazon VPC)"
	linux := p.ProductDescription == "Linux/UNIX" || p.ProductDescription == "Linux/UNIX (Amazon VPC)"
	region := awsRegion.FindString(p.AvailabilityZone)
	if windows && !a.opts.has(Windows) || linux && !a.opts.has(Linux) || !linux && !windows || !a.wants(p.InstanceType, region) {
		return nil
	}
	currency := "USD" // the history names none
	if strings.HasPrefix(region, "cn-") {
		currency = "CNY"
	}
	k := kind{instanceType: p.InstanceType, region: region, zone: p.AvailabilityZone, spot: true, windows: windows}
	a.add(k, p.SpotPrice, currency, offer{since: p.Timestamp, where: "spot price of " + p.AvailabilityZone + " at " + p.Timestamp.Format(time.RFC3339)})
	return nil
}
