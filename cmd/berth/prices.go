package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/config/nodeprices"
	"github.com/berthproject/berth/config/nodeprices/pricelist"
	"github.com/berthproject/berth/internal/term"
)

// This file is berth prices: price files of the lists that clouds publish.
// Lists are downloaded by people, not by this command: cloud credentials stay out of it,
// and an import can be repeated.

// pricesCommand groups what there is to do with prices; so far that is one thing.
func pricesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "prices", Short: "Make price files of node prices"}
	cmd.AddCommand(pricesImportCommand())
	return cmd
}

// pricesImportCommand returns berth prices import. What can't be priced is skipped with a
// note and isn't an error: a list has thousands of types, of which a cluster uses a few.
func pricesImportCommand() *cobra.Command {
	o := pricelist.Options{}
	cmd := &cobra.Command{
		Use:   "import aws|azure|gcp|opencost FILE...",
		Short: "Print a price file for --node-prices with the prices of a list that a cloud or OpenCost publishes",
		Long: `Import reads price lists from files, "-" for stdin, and prints a price file for
berth run --node-prices: the prices of running instances on demand, and of spot
instances where the list has them. It connects to nothing; docs/prices.md has the
commands that download the lists. Notes about prices that are missing go to stderr.`,
		Example: `  berth prices import aws --region eu-west-1 index.json spot.json > prices.yaml
  berth prices import azure --region westeurope page-1.json page-2.json > prices.yaml
  berth prices import gcp --region europe-west1 skus.json machine-types.json > prices.yaml
  berth prices import opencost metrics.txt > prices.yaml`,
		Args:      cobra.MinimumNArgs(2),
		ValidArgs: pricelist.Sources(),
		RunE: func(cmd *cobra.Command, args []string) error {
			// A list may have prices of several periods: those of today are meant.
			o.Now = time.Now()
			r, err := pricelist.Import(args[0], args[1:], cmd.InOrStdin(), o)
			if err != nil {
				return term.Usage(err)
			}
			// Notes go to stderr so that the output can be redirected into a file.
			for _, note := range r.Notes {
				fmt.Fprintln(cmd.ErrOrStderr(), note)
			}
			// The command line is written into the head of the file, so that people know
			// how to make it anew.
			return nodeprices.Write(cmd.OutOrStdout(), r.Currency, r.Rules, "berth prices import "+strings.Join(args, " "))
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&o.Regions, "region", nil, "regions to import (default: all of the list)")
	fs.StringSliceVar(&o.InstanceTypes, "instance-type", nil, "instance types to import, or patterns such as m7i.* (default: all)")
	fs.StringSliceVar(&o.OS, "os", []string{pricelist.Linux}, "operating systems of nodes to import: linux, windows or both")
	fs.StringVar(&o.SpotLabel, "spot-label", "", "label KEY=VALUE of spot nodes (default: that of the cloud's own node groups)")
	fs.StringVar(&o.Currency, "currency", "", "ISO 4217 code that the prices must be in; for opencost, whose metrics have none, the currency they are in (default: the list's, or USD)")
	return cmd
}
