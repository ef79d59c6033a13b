package api

import (
	"cmp"
	"slices"
	"strings"
)

// This file helps people who mistype the name of a node or a node group.

// maxNearest is how many names Nearest returns.
const maxNearest = 5

// maxCompared bounds a name's length times the number of names it is compared with, which is about a tenth of a second
// of work: a client that asks for names that don't exist must not keep processors busy.
const maxCompared = 1 << 19

// Nearest returns those of the names that are most like one, the nearest first: by how many
// letters have to be changed. Where that would take long, there are none.
func Nearest(name string, names []string) []string {
	if len(name)*len(names) > maxCompared {
		return nil
	}
	return NearestBy(names, func(other string) int { return Distance(name, other) })
}

// Similar returns the names that are most like one as the end of a sentence, "" for none. where is "" or ends in a space.
func Similar(where, name string, names []string) string {
	nearest := Nearest(name, names)
	if len(nearest) == 0 {
		return ""
	}
	return "; similar names " + where + "are " + strings.Join(nearest, ", ")
}

// NearestBy is Nearest by a distance, which is asked for once for each name: it costs as much as
// both names are long.
func NearestBy(names []string, distance func(string) int) []string {
	type candidate struct {
		name     string
		distance int
	}
	list := make([]candidate, len(names))
	for i, name := range names {
		list[i] = candidate{name, distance(name)}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, x := range list[:min(len(list), maxNearest)] {
		out = append(out, x.name)
	}
	return out
}

// Distance is Levenshtein's: how many letters have to be added, removed or replaced to make
// b of a. Upper and lower case are the same, and a part of a name is near it.
func Distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a != "" && strings.Contains(b, a) {
		return 0
	}
	// One row of the table is kept, and bytes are compared rather than letters: names of Kubernetes are ASCII.
	row := make([]int, len(b)+1) // row[j] is the distance of what was read of a to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // the distance of a[:i] to b[:j]
		row[0] = i + 1
		for j := range len(b) {
			replace := before
			if a[i] != b[j] {
				replace++
			}
			before = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
