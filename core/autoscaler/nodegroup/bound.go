package nodegroup

import (
	"fmt"
	"strconv"
	"strings"
)

// Bound is one --nodes: the limits of a node group, in place of the provider's own.
type Bound struct {
	Name     string // the group's ID
	Min, Max int
}

// ParseBound reads MIN:MAX:NAME. A name may have colons. The error says what would be accepted.
func ParseBound(text string) (Bound, error) {
	low, rest, _ := strings.Cut(text, ":")
	high, name, _ := strings.Cut(rest, ":")
	b := Bound{Name: name}
	var lowErr, highErr error
	b.Min, lowErr = strconv.Atoi(low)
	b.Max, highErr = strconv.Atoi(high)
	switch {
	case lowErr != nil || highErr != nil || name == "" || b.Min < 0:
		return Bound{}, fmt.Errorf("%q must be MIN:MAX:NAME, two whole numbers of at least 0 and the name of a node group, such as 0:10:workers", text)
	case b.Min > b.Max:
		return Bound{}, fmt.Errorf("%q has a minimum of %d above the maximum of %d; set the minimum to at most %[3]d", text, b.Min, b.Max)
	}
	return b, nil
}

// String returns the bound as ParseBound reads it.
func (b Bound) String() string { return fmt.Sprintf("%d:%d:%s", b.Min, b.Max, b.Name) }
