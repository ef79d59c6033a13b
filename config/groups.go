package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// This file has the flags that say which node groups of the provider are Berth's. They are for a
// live cluster: a scenario has all groups that it states.

// Groups is what these flags set.
type Groups struct {
	// Bounds name the groups, with their limits; all groups are Berth's when there is none.
	Bounds []nodegroup.Bound
	// Discovery says how a provider finds its groups, in the provider's own words.
	Discovery []string
}

// Flags adds the flags to fs.
func (g *Groups) Flags(fs *pflag.FlagSet) {
	fs.Var(boundFlag{&g.Bounds}, "nodes", "MIN:MAX:NAME: size limits of a node group, overriding the provider's; may be repeated. If set, node groups that it does not name are not scaled up or down")
	fs.Var(list{&g.Discovery}, "node-group-auto-discovery", "how the provider discovers its node groups, if it supports more than one way; may be repeated")
}

// boundFlag is a pflag.Value that adds a bound each time.
type boundFlag struct{ target *[]nodegroup.Bound }

// Set implements pflag.Value.
func (f boundFlag) Set(text string) error {
	b, err := nodegroup.ParseBound(text)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(*f.target, func(x nodegroup.Bound) bool { return x.Name == b.Name }) {
		return fmt.Errorf("node group %q is given twice; give each group once", b.Name)
	}
	*f.target = append(*f.target, b)
	return nil
}

// String implements pflag.Value.
func (f boundFlag) String() string {
	var out []string
	for _, b := range *f.target {
		out = append(out, b.String())
	}
	return strings.Join(out, ",")
}

// Type implements pflag.Value.
func (boundFlag) Type() string { return "MIN:MAX:NAME" }
