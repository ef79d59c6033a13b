package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/edge/incumbent"
)

// This file has what --shadow makes of the other flags of berth run.

// validateShadow refuses flags with which there is nothing to compare, or which ask a shadow to
// write.
func (f *runFlags) validateShadow() error {
	if f.mode == modeAutoscaler {
		return errors.New("--shadow compares placements, but --mode=autoscaler makes none; omit --mode")
	}
	return nil
}

// shadowless are flags that say how Berth writes, with why a shadow doesn't need them.
var shadowless = []struct{ name, why string }{
	{"leader-elect", "a shadow writes nothing and needs no Lease"},
	{"leader-elect-lease-duration", "a shadow needs no Lease"},
	{"leader-elect-renew-deadline", "a shadow needs no Lease"},
	{"leader-elect-retry-period", "a shadow needs no Lease"},
	{"leader-elect-resource-lock", "a shadow needs no Lease"},
	{"leader-elect-resource-name", "a shadow needs no Lease"},
	{"leader-elect-resource-namespace", "a shadow needs no Lease"},
	{incumbent.AllowScheduler, "a shadow may run beside any scheduler"},
	{incumbent.AllowAutoscaler, "a shadow may run beside any autoscaler"},
	{"write-status-configmap", "a shadow writes no status"},
	{"status-config-map-name", "a shadow writes no status"},
	{"surge", "a shadow evicts no pods"},
	{"consolidation", "a shadow compares no consolidations: they wait for new nodes, which it does not add"},
	{"max-bulk-soft-taint-count", "a shadow taints no nodes"},
	{"max-bulk-soft-taint-time", "a shadow taints no nodes"},
	{"max-scale-down-parallelism", "a shadow's removals never finish, so none waits for another"},
	{"max-drain-parallelism", "a shadow's removals never finish, so none waits for another"},
}

// shadowNotes says which flags of the command line have no effect with --shadow.
func shadowNotes(commandLine *pflag.FlagSet) (notes []string) {
	for _, x := range shadowless {
		if commandLine.Changed(x.name) {
			notes = append(notes, fmt.Sprintf("--%s has no effect with --shadow: %s", x.name, x.why))
		}
	}
	return notes
}
