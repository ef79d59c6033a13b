package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/berthproject/berth/devcluster/storm"
)

// This file is devcluster storm. Of several seeds each is played, also after one that broke; what
// can't be played ends it at once.

// stormCommand returns the command storm. A plan depends on the seed and the kinds alone,
// so that --plan prints what a storm with the same flags does.
func stormCommand() *cobra.Command {
	o := storm.Options{}
	var kinds, seeds, logs string
	var minutes float64
	var plan bool
	cmd := &cobra.Command{
		Use: "storm", Short: "Play bad days on a cluster with several Berths, and check that nothing is done twice or lost", Args: cobra.NoArgs,
		Long: `Storm starts a cluster with two or three Berths, each behind a proxy, puts load on
it, and has one misfortune after the other happen, in an order that a seed draws. A
checker that watches the API by itself says what was done twice and what was lost.
It ends with an error when anything was, with the seed and the line of the plan.
Nothing is left behind, also after Ctrl-C, unless --logs says where to keep logs.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Kinds, err = storm.Kinds(kinds, o.Devices); err != nil {
				return err
			}
			list, err := parseSeeds(seeds)
			if err != nil {
				return err
			}
			// Fractions of a minute are for tests.
			o.Out, o.Lasts = cmd.OutOrStdout(), time.Duration(minutes*float64(time.Minute))
			if o.Berths < 1 || o.Lasts <= 0 {
				return fmt.Errorf("--berths is %d and --minutes %g; both must be greater than 0", o.Berths, minutes)
			}
			klog.SetLogger(logr.Discard()) // libraries say what the storm does to them
			var broken []error
			// The field is the loop's variable: each storm gets the options with a seed of
			// its own.
			for _, o.Seed = range list {
				if plan {
					// As many lines as there are kinds; a storm goes on drawing for as long
					// as it lasts.
					for _, s := range storm.Plan(o.Seed, len(o.Kinds), o.Kinds) {
						fmt.Fprintln(o.Out, s)
					}
					continue
				}
				// Logs of several seeds would overwrite each other in one directory.
				if logs != "" {
					o.Logs = filepath.Join(logs, fmt.Sprint("seed-", o.Seed))
				}
				// A storm that found something is a result, and the next seed is played.
				// Any other error means that it couldn't be played at all.
				if err := storm.Run(cmd.Context(), o); errors.Is(err, storm.ErrBroken) {
					fmt.Fprintln(o.Out, err)
					broken = append(broken, err)
				} else if err != nil {
					return err
				}
			}
			return errors.Join(broken...)
		},
	}
	cmd.Flags().StringVar(&seeds, "seeds", "1", "seeds of the plans, such as 7 or 1..20: a storm for each")
	cmd.Flags().Float64Var(&minutes, "minutes", 5, "how long misfortunes go on; starting the cluster and coming to rest take two or three more")
	cmd.Flags().StringVar(&kinds, "only", "", "misfortunes to choose from, with commas (default: all)")
	cmd.Flags().BoolVar(&o.Each, "each", false, "go on after --minutes until each misfortune has come once")
	cmd.Flags().BoolVar(&o.Devices, "devices", false, "have a driver publish, change and taint devices, and pods claim them")
	cmd.Flags().IntVar(&o.Berths, "berths", 3, "how many Berths run")
	cmd.Flags().StringVar(&o.Berth, "berth", "bin/berth", "path of the berth binary")
	cmd.Flags().StringVar(&logs, "logs", "", "directory to keep the Berths' logs in, by seed (default: a temporary one, removed at the end)")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "placements that resume later than they should are an error, too")
	cmd.Flags().BoolVar(&plan, "plan", false, "print the first lines of the plan and do nothing")
	return cmd
}

// parseSeeds reads "7" or "1..20".
func parseSeeds(text string) (out []uint64, err error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	// In "1..20" both ends are included.
	from, err := strconv.ParseUint(first, 10, 64)
	to, err2 := strconv.ParseUint(last, 10, 64)
	if err != nil || err2 != nil || to < from {
		return nil, fmt.Errorf("--seeds is %q; it must be a number or a range such as 1..20", text)
	}
	for s := from; s <= to; s++ {
		out = append(out, s)
	}
	return out, nil
}
