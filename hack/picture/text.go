package main

import (
	"errors"
	"regexp"
	"strings"
)

// rows is how many rows of a table the picture has at most.
const rows = 14

// row matches a row of the demo's table.
var row = regexp.MustCompile(`^ *\d+s │`)

// firstShow returns the lines of the demo's first part, from "submitted" to the end of its summary,
// with rows left out evenly where the table has too many.
func firstShow(text string) ([]string, error) {
	_, text, found := strings.Cut("\n"+text, "\nsubmitted ")
	text, _, _ = strings.Cut(text, "\nnext, ")
	if !found || !strings.Contains(text, " │ ") {
		return nil, errors.New(`it has no line that begins with "submitted", or no table after it`)
	}
	lines := strings.Split(strings.TrimRight("submitted "+text, "\n"), "\n")
	table := 0
	for _, line := range lines {
		if row.MatchString(line) {
			table++
		}
	}
	var out []string
	seen := 0
	for _, line := range lines {
		if row.MatchString(line) {
			seen++
			if !kept(seen-1, table) {
				continue
			}
		}
		out = append(out, line)
	}
	return out, nil
}

// kept reports whether the picture has the row i of n: the first, the last, and others evenly.
func kept(i, n int) bool {
	if n <= rows {
		return true
	}
	step := float64(n-1) / float64(rows-1)
	at := int(float64(i)/step + 0.5) // the row of the picture that is nearest
	return i == int(float64(at)*step+0.5)
}
