package pricelist

import (
	"bufio"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// This file reads pages of Azure's Retail Prices API (https://prices.azure.com/api/retail/prices), or an array
// of their Items.

// azureItem is an item of a page.
type azureItem struct {
	CurrencyCode         string      `json:"currencyCode"`
	TierMinimumUnits     float64     `json:"tierMinimumUnits"`
	RetailPrice          json.Number `json:"retailPrice"`
	ArmRegionName        string      `json:"armRegionName"`
	EffectiveStartDate   time.Time   `json:"effectiveStartDate"`
	EffectiveEndDate     *time.Time  `json:"effectiveEndDate"`
	MeterID              string      `json:"meterId"`
	ProductName          string      `json:"productName"`
	SKUName              string      `json:"skuName"`
	ServiceName          string      `json:"serviceName"`
	UnitOfMeasure        string      `json:"unitOfMeasure"`
	Type                 string      `json:"type"`
	IsPrimaryMeterRegion *bool       `json:"isPrimaryMeterRegion"`
	ArmSKUName           string      `json:"armSkuName"`
}

// azure is the state of reading lists of Azure.
type azure struct {
	*table
	pages pages
}

func newAzure() *source {
	a := &azure{}
	return &source{
		name: "azure", spotLabel: "kubernetes.azure.com/scalesetpriority=spot",
		read: func(t *table, in *bufio.Reader, name string) error {
			a.table = t
			return a.readPage(in, name)
		},
		finish: func(t *table) { a.pages.check(t, "NextPageLink") },
	}
}

// readPage reads a page, or an array of items.
func (a *azure) readPage(in *bufio.Reader, name string) error {
	s := newStream(in)
	if first, _ := firstByte(in); first == '[' {
		a.pages.ended = true
		return s.array(func() error { return a.item(s) })
	}
	known := false
	next := ""
	err := s.object(func(key string) error {
		switch key {
		case "Items":
			known = true
			return s.array(func() error { return a.item(s) })
		case "NextPageLink":
			return s.decode(&next)
		}
		return s.skip()
	})
	if err == nil && !known {
		return errors.New("there are no Items, as pages of Azure's Retail Prices API have")
	}
	a.pages.add(name, next)
	return err
}

// item reads a price. Of a meter that several regions have, that of the primary one counts.
func (a *azure) item(s *stream) error {
	var i azureItem
	if err := s.decode(&i); err != nil {
		return err
	}
	k := kind{instanceType: i.ArmSKUName, region: i.ArmRegionName, spot: strings.HasSuffix(i.SKUName, " Spot"), windows: strings.HasSuffix(i.ProductName, " Windows")}
	switch {
	case i.ServiceName != "Virtual Machines" || i.Type != "Consumption" || i.ArmSKUName == "" || i.ArmRegionName == "",
		i.UnitOfMeasure != "1 Hour" || i.TierMinimumUnits != 0,
		strings.Contains(i.ProductName, "Cloud Services") || strings.Contains(i.ProductName, "CloudServices") || strings.Contains(i.ProductName, "Dedicated Host"),
		strings.HasSuffix(i.SKUName, " Low Priority"), // of Azure Batch
		k.windows && !a.opts.has(Windows) || !k.windows && !a.opts.has(Linux),
		i.EffectiveEndDate != nil && !i.EffectiveEndDate.After(a.opts.Now),
		!a.wants(k.instanceType, k.region):
		return nil
	}
	o := offer{since: i.EffectiveStartDate, where: "meter " + i.MeterID}
	if i.IsPrimaryMeterRegion != nil && !*i.IsPrimaryMeterRegion {
		o.rank = 1
	}
	a.add(k, i.RetailPrice.String(), i.CurrencyCode, o)
	return nil
}

// pages notice when a list of several pages isn't whole.
type pages struct {
	last  string // file whose page says that another follows
	ended bool   // a page says that it is the last one
}

// add records a page of a file, and the link in it to the next page, "" for none.
func (p *pages) add(file, next string) {
	if next == "" {
		p.ended = true
	} else {
		p.last = file
	}
}

// check notes a list whose last page wasn't read.
func (p *pages) check(t *table, field string) {
	if !p.ended && p.last != "" {
		t.notes = append(t.notes, "the list goes on: no file is the last page, and "+p.last+" names another in "+field+"; prices of the other pages are missing")
	}
}
