package engine

import "fmt"

// Hinting names the plugins whose hints count, by their position in the profile.
func (d *Diagnosis) Hinting() string { return fmt.Sprint(d.hinting) }

// UnknownDryRuns returns of how many nodes the class's dry runs have to be made again.
func (e *Engine) UnknownDryRuns(c *Class) int { return len(e.dryRunsOf(c).unknown) }
