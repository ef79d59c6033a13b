package door

import (
	"fmt"
	"unicode/utf8"
)

// The bounds, in bytes unless they say otherwise. Each is beyond what the API or a cloud has, and
// small enough for a cluster's worth of it.
const (
	// MaxName is of the name, the namespace and the UID of an object: the API's own, of a DNS
	// subdomain.
	MaxName = 253
	// MaxID is of the ID of a node group or an instance. Those of clouds are paths of some hundred
	// bytes.
	MaxID = 2048
	// MaxText is of what another program says to people, such as the reason why a node doesn't do.
	MaxText = 1024
	// MaxGroups is how many node groups a provider lists.
	MaxGroups = 10_000
	// MaxInstances is how many instances one node group lists.
	MaxInstances = 100_000
	// MaxEntries is how many labels, annotations, taints, images or resources a template has.
	MaxEntries = 1000
	// MaxNesting is how deep lists and objects of JSON stand in each other.
	MaxNesting = 200
)

// Problem is something from outside that is beyond a bound.
type Problem struct {
	// Object is what it is about, such as "pod ns/name" or "node group g".
	Object string
	// What is beyond the bound, and what becomes of it, such as "its name has 300 bytes, at most
	// 253 are accepted; it is ignored".
	What string
	// Refused reports that the core isn't told of the object at all.
	Refused bool
}

// Error names the object, the value, the bound and what becomes of it.
func (p Problem) Error() string { return p.Object + ": " + p.What }

// Shorten returns a text of at most MaxText bytes, with … at the end of one that was longer.
func Shorten(text string) string {
	if len(text) <= MaxText {
		return text
	}
	at := MaxText
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + "…"
}

// NameError returns an error about a name in a question that no object of a kind, such as "node",
// can have; nil for any other. It repeats no more than the beginning of the name.
func NameError(kind, name string) error { return nameError(kind, name, MaxName) }

// GroupNameError is NameError for the ID of a node group.
func GroupNameError(name string) error { return nameError("node group", name, MaxID) }

func nameError(kind, name string, most int) error {
	if len(name) > most {
		return fmt.Errorf("the name of the %s has %d bytes; it must be no more than %d: %.40q…", kind, len(name), most, name)
	}
	return nil
}
