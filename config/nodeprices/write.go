package nodeprices

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Rule is a rule of a price file: what a node with all of these labels costs an hour.
type Rule struct {
	Match        map[string]string
	PricePerHour float64
}

// Write writes a price file with these rules, in their order and one a line, below the lines of a comment.
func Write(w io.Writer, currency string, rules []Rule, comment ...string) error {
	out := bufio.NewWriter(w)
	for _, line := range comment {
		fmt.Fprintf(out, "# %s\n", strings.ReplaceAll(line, "\n", " "))
	}
	fmt.Fprintf(out, "apiVersion: %s\nkind: %s\ncurrency: %s\nrules:\n", APIVersion, Kind, currency)
	for i := range rules {
		r := &rules[i]
		pairs := make([]string, 0, len(r.Match))
		for _, key := range slices.Sorted(maps.Keys(r.Match)) {
			pairs = append(pairs, key+": "+strconv.Quote(r.Match[key]))
		}
		fmt.Fprintf(out, "- {match: {%s}, pricePerHour: %s}\n", strings.Join(pairs, ", "), strconv.FormatFloat(r.PricePerHour, 'f', -1, 64))
	}
	return out.Flush() // with the first error of all writes
}
