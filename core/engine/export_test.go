package engine

import "fmt"

// Hinting names the plugins whose hints count, by their position in the profile.
func (d *Diagnosis) Hinting() string { return fmt.Sprint(d.hinting) }

// UnknownDryRuns returns of how many nodes the class's dry runs have to be made again.
func (e *Engine) UnknownDryRuns(c *Class) int { return len(e.dryRunsOf(c).unknown) }

// FailingNodes returns on how many nodes a local rule of the class has an error, whether or not a rule
// before it rejects them.
func (e *Engine) FailingNodes(c *Class) int { return e.syncedColumn(c).evaluator().failing }
