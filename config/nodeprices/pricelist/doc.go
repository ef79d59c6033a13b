// Package pricelist makes price files (--node-prices) of the price lists that others publish: OpenCost's
// metrics, and the lists of AWS, Azure and Google Cloud in their own formats. It reads files only.
//
//	pricelist.go  sources, what is wanted of a list, and the rules that come out
//	table.go      prices by kind of node; duplicates, gaps and what else may be wrong with a list
//	stream.go     JSON of any size, read value by value
//	aws.go        the EC2 offer file (JSON and CSV) and the history of spot prices
//	azure.go      pages of the Retail Prices API
//	gcp.go        pages of the Cloud Billing Catalog, and machine types
//	opencost.go   a scrape of OpenCost's metrics
//
// What must hold:
//   - memory is bounded by the kinds of nodes that are wanted, not by the size of a list: AWS's has
//     gigabytes;
//   - a price that isn't certain is never guessed: it is left out and noted, or the list is refused.
package pricelist
