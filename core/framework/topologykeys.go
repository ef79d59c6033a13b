package framework

import "slices"

// TopologyKeys are the keys of the topologies whose domains a rule looks at,
// each once, in the order in which the rule met them. The zero value is ready.
type TopologyKeys []string

// Index returns the position of a key in the list. A key that isn't there yet is
// added.
func (t *TopologyKeys) Index(key string) int {
	at := slices.Index(*t, key)
	if at < 0 {
		at = len(*t)
		*t = append(*t, key)
	}
	return at
}
