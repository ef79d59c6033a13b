package testkit

import (
	"maps"
	"slices"
	"strings"
)

// This file puts values into documents that nobody expects there.

// OddValues are values that some field of some object doesn't expect.
var OddValues = []any{
	nil, "", "x", "0", "1", "-1", 0, 1, -1, 1.5, 1e300, 1e-300, true, false, []any{}, map[string]any{}, []any{nil},
	2147483647, -2147483648, int64(9223372036854775807), int64(-9223372036854775808), "9223372036854775807",
	"9e999999999", "1e-999999999", "100%", "-100%", "99999999h", "-1h", "1ns", "a/b/c", "*", "\x00", strings.Repeat("a", 300),
	"NoSchedule", "NoExecute", "WaitForFirstConsumer", "DoNotSchedule", "Gt", "Exists", "kubernetes.io/hostname", "default",
	"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
}

// Oddly replaces each value of a document, maps and lists included, by n odd values one after the
// other, by all of them when n is 0, calls changed with each in place, and puts the old one back.
// Order and values are the same each time.
func Oddly(document any, n int, changed func()) {
	if n == 0 {
		n = len(OddValues)
	}
	next := 0
	eachValue(document, func(old any, replace func(any)) {
		for range n {
			replace(OddValues[next%len(OddValues)])
			next++
			changed()
		}
		replace(old)
	})
}

// eachValue calls visit with each value of a document and with what replaces it.
func eachValue(document any, visit func(old any, replace func(any))) {
	switch x := document.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			old := x[key]
			visit(old, func(v any) { x[key] = v })
			eachValue(old, visit)
		}
	case []any:
		for i, old := range x {
			visit(old, func(v any) { x[i] = v })
			eachValue(old, visit)
		}
	}
}
