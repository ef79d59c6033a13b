package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
)

// This file has the flags that bound what all nodes of a cluster have together:
// --cores-total=MIN:MAX, --memory-total=MIN:MAX in GiB, and --gpu-total=RESOURCE:MIN:MAX,
// which may be repeated. All set one list, with one entry per resource.

// totalFlag is a pflag.Value that sets the bounds of one resource.
type totalFlag struct {
	totals   *[]autoscaler.Total
	resource v1.ResourceName
	unit     int64 // how many of the list's units one of the flag's is
}

// Set implements pflag.Value.
func (f totalFlag) Set(text string) error {
	low, high, err := bounds(text)
	if err != nil {
		return err
	}
	setTotal(f.totals, autoscaler.Total{Resource: f.resource, Min: low * f.unit, Max: high * f.unit})
	return nil
}

// String implements pflag.Value: the bounds as the flag takes them.
func (f totalFlag) String() string {
	for _, t := range *f.totals {
		if t.Resource == f.resource {
			return fmt.Sprintf("%d:%d", t.Min/f.unit, t.Max/f.unit)
		}
	}
	return ""
}

// Type implements pflag.Value.
func (totalFlag) Type() string { return "MIN:MAX" }

// gpuTotalFlag is a pflag.Value that sets the bounds of one extended resource each time.
type gpuTotalFlag struct{ totals *[]autoscaler.Total }

// Set implements pflag.Value.
func (f gpuTotalFlag) Set(text string) error {
	name, rest, ok := strings.Cut(text, ":")
	if !ok || !strings.Contains(name, "/") {
		return fmt.Errorf("%q must be RESOURCE:MIN:MAX, such as nvidia.com/gpu:0:64", text)
	}
	low, high, err := bounds(rest)
	if err != nil {
		return err
	}
	setTotal(f.totals, autoscaler.Total{Resource: v1.ResourceName(name), Min: low, Max: high})
	return nil
}

// String implements pflag.Value.
func (f gpuTotalFlag) String() string {
	var out []string
	for _, t := range *f.totals {
		if strings.Contains(string(t.Resource), "/") {
			out = append(out, fmt.Sprintf("%s:%d:%d", t.Resource, t.Min, t.Max))
		}
	}
	return strings.Join(out, ",")
}

// Type implements pflag.Value.
func (gpuTotalFlag) Type() string { return "RESOURCE:MIN:MAX" }

// maxBound keeps bounds, in any unit, within an int64.
const maxBound = 1 << 30

// bounds reads MIN:MAX.
func bounds(text string) (low, high int64, err error) {
	from, to, _ := strings.Cut(text, ":")
	low, lowErr := strconv.ParseInt(from, 10, 64)
	high, highErr := strconv.ParseInt(to, 10, 64)
	if lowErr != nil || highErr != nil || low < 0 || high < low || high > maxBound {
		return 0, 0, fmt.Errorf("%q must be MIN:MAX, two whole numbers from 0 to %d, MIN not above MAX, such as 0:1000", text, maxBound)
	}
	return low, high, nil
}

// setTotal adds the bounds of a resource, or replaces them. It leaves the list alone that
// others may have a copy of.
func setTotal(totals *[]autoscaler.Total, t autoscaler.Total) {
	out := slices.DeleteFunc(slices.Clone(*totals), func(x autoscaler.Total) bool { return x.Resource == t.Resource })
	*totals = append(out, t)
}

// valueFlag is the row of a flag that checks its value as it is set.
func valueFlag(name string, value pflag.Value, usage string) flag {
	return flag{
		register: func(fs *pflag.FlagSet) { fs.Var(value, name, usage) },
		validate: func() error { return nil },
	}
}

// listFlag is the row of a flag that may be repeated, and takes a comma list. Several may
// add to one list.
func listFlag(name string, target *[]string, usage string) flag {
	return valueFlag(name, list{target}, usage)
}

// list is a pflag.Value that adds to a list.
type list struct{ target *[]string }

// Set implements pflag.Value.
func (l list) Set(text string) error {
	*l.target = append(slices.Clip(*l.target), strings.Split(text, ",")...)
	return nil
}

// String implements pflag.Value.
func (l list) String() string { return strings.Join(*l.target, ",") }

// Type implements pflag.Value.
func (list) Type() string { return "strings" }
