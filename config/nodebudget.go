package config

import (
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler/nodebudget"
)

// nodeBudgets is a pflag.Value that adds a node budget to a list. Commas are part of a budget,
// so each budget is a flag of its own.
type nodeBudgets struct{ target *[]nodebudget.Budget }

// Set implements pflag.Value.
func (n nodeBudgets) Set(text string) error {
	b, err := nodebudget.Parse(text)
	if err != nil {
		return err
	}
	*n.target = append(slices.Clip(*n.target), b)
	return nil
}

// String implements pflag.Value.
func (n nodeBudgets) String() string {
	var out []string
	for _, b := range *n.target {
		out = append(out, b.String())
	}
	return strings.Join(out, " ")
}

// Type implements pflag.Value.
func (nodeBudgets) Type() string { return "budget" }
