// Package gate holds figures of speed against what they were: it keeps their history and says
// which of them have become worse.
//
//	history.go  the file of what figures were
//	compare.go  which figures fail, and which are worth a line of the file
//	measure.go  figures from the output of benchmarks
//	rates.go    the rate that each case of the dev cluster must have
//	nights.go   what figures were at each commit that a night has measured, as plots
//
// There are two histories. docs/performance-history.tsv has what figures are held to, and gets a line
// only when somebody records one; docs/performance-nights.tsv has every night.
//
// What must hold: nothing fails because the machine is slow. What is held is a count, or a ratio of two
// times that were measured in the same run; times of one side alone are shown and never fail.
package gate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind says what a figure is, and so which way is worse.
type Kind string

// The kinds of figures.
const (
	// Ratio is how many times as long kube-scheduler's own algorithm takes as Berth's, in the same
	// run.
	Ratio Kind = "ratio"
	// Allocs is how many pieces of memory a placement or a plan allocates.
	Allocs Kind = "allocs"
	// Nodes is how many nodes a plan buys for the same pods.
	Nodes Kind = "nodes"
	// Removable is how many of the same nodes a pass of scale-down finds removable together.
	Removable Kind = "removable"
	// Rate is how many pods a second Berth places on the dev cluster.
	Rate Kind = "pods/s"
	// CPU is the scheduler's CPU time for each of them, in ms.
	CPU Kind = "CPU ms/pod"
	// PlanTime is the time of a plan or a scan, in ms.
	PlanTime Kind = "plan ms"
	// PassTime is the time of a pass of scale-down, in ms.
	PassTime Kind = "pass ms"
)

// rule is how figures of a kind are judged.
// A bound of 1 means that any change for the worse fails.
type rule struct {
	kind        Kind
	lessIsWorse bool
	bound       float64 // times the newest entry: what a figure may be at worst
	// held kinds fail beyond their bound: they are ratios within one run, or counts. The others are
	// times of a machine, which another machine or other work on it changes as much as a fault does.
	held bool
}

// Floor is the share of its newest entry under which a ratio fails. CPU times of one run vary by a tenth
// or two on a busy machine, and both sides' together.
const Floor = 0.7

// countSlack is for allocations of maps and sorts, of which one in some ten thousand more or less
// happens. Small counts have to be equal.
const countSlack = 1.005

// rules has all kinds, in the order of pages.
var rules = []rule{
	{Ratio, true, Floor, true},
	{Allocs, false, countSlack, true},
	{Nodes, false, 1, true},
	{Removable, true, 1, true},
	{Rate, true, Floor, false},
	{CPU, false, 1 / Floor, false},
	{PlanTime, false, 1 / Floor, false},
	{PassTime, false, 1 / Floor, false},
}

// rule returns how a kind is judged; false for a kind that doesn't exist.
func (k Kind) rule() (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.kind == k })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

// worst returns what a figure may be at worst by its newest entry.
func (r rule) worst(was float64) float64 { return r.bound * was }

// beyond reports whether a figure is worse than its newest entry lets it be.
func (r rule) beyond(v, was float64) bool {
	if r.lessIsWorse {
		return v < r.worst(was)
	}
	return v > r.worst(was)
}

// Figure is what was measured of one case. Kind and Case identify it; Value is in the kind's unit.
type Figure struct {
	Kind  Kind
	Case  string
	Value float64
}

func (f Figure) String() string { return fmt.Sprintf("%s of %q", f.Kind, f.Case) }

// same reports whether two figures are of the same kind and case.
func (f Figure) same(o Figure) bool { return f.Kind == o.Kind && f.Case == o.Case }

// Entry is a line of the history: what a figure has been since a commit.
type Entry struct {
	Figure
	Day    time.Time // UTC, of the commit
	Commit string    // its short hash
}

// header is the first line of the file.
const header = "day\tcommit\tkind\tcase\tvalue"

// History is all that figures have been, the oldest first. A figure is held to its newest entry, so a line
// more is how a figure's floor is moved, in either direction.
type History []Entry

// Read reads a history file. Its error names the file, the line and what is wrong with it.
func Read(name string, r io.Reader) (History, error) {
	var out History
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if n == 1 {
			if line != header {
				return nil, fmt.Errorf("%s:1: %q isn't the header %q", name, line, header)
			}
			continue
		}
		e, err := entryOf(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		out = append(out, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return out, nil
}

// entryOf reads a line. Only allocations may be 0: a time, a ratio or a rate of 0 was not measured.
func entryOf(line string) (Entry, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 5 {
		return Entry{}, fmt.Errorf("%q has %d fields between tabs, not the 5 of %q", line, len(fields), header)
	}
	day, err := time.Parse(time.DateOnly, fields[0])
	if err != nil {
		return Entry{}, fmt.Errorf("day %q isn't a date such as 2026-01-31", fields[0])
	}
	kind := Kind(fields[2])
	if _, ok := kind.rule(); !ok {
		return Entry{}, fmt.Errorf("kind %q is none of %s", fields[2], kindNames())
	}
	value, err := strconv.ParseFloat(fields[4], 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 || kind != Allocs && value == 0 {
		return Entry{}, fmt.Errorf("value %q isn't a number above 0, or 0 allocations", fields[4])
	}
	return Entry{Figure{kind, fields[3], value}, day, fields[1]}, nil
}

func kindNames() string {
	var names []string
	for _, r := range rules {
		names = append(names, string(r.kind))
	}
	return strings.Join(names, ", ")
}

// Write writes the file that Read reads.
func (h History) Write(w io.Writer) error {
	if _, err := fmt.Fprintln(w, header); err != nil {
		return err
	}
	for _, e := range h {
		value := strconv.FormatFloat(rounded(e.Value), 'f', -1, 64)
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Day.Format(time.DateOnly), e.Commit, e.Kind, e.Case, value); err != nil {
			return err
		}
	}
	return nil
}

// rounded returns a whole number as it is, others with four digits.
func rounded(v float64) float64 {
	if v == math.Trunc(v) {
		return v
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // it was just written
	return short
}

// latest returns the newest entry of a figure.
func (h History) latest(f Figure) (Entry, bool) {
	for _, e := range slices.Backward(h) {
		if e.same(f) {
			return e, true
		}
	}
	return Entry{}, false
}

// Cases returns the cases of a kind, in the order in which they came into the file.
func (h History) Cases(k Kind) (out []string) {
	for _, e := range h {
		if e.Kind == k && !slices.Contains(out, e.Case) {
			out = append(out, e.Case)
		}
	}
	return out
}

// OfKinds returns the entries of some kinds.
func (h History) OfKinds(kinds ...Kind) History {
	return slices.DeleteFunc(slices.Clone(h), func(e Entry) bool { return !slices.Contains(kinds, e.Kind) })
}

// Of returns the entries of one figure.
func (h History) Of(k Kind, name string) (out History) {
	for _, e := range h {
		if e.same(Figure{Kind: k, Case: name}) {
			out = append(out, e)
		}
	}
	return out
}
