package engine

import "fmt"

// Hinting names the plugins whose hints count, by their position in the profile.
func (d *Diagnosis) Hinting() string { return fmt.Sprint(d.hinting) }
