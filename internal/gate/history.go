// Package gate holds figures of speed against what they were: it keeps their history and says
// which of them have become worse.
//
//	history.go  the file of what figures were
//	compare.go  which figures fail, and which are worth a line of the file
//	measure.go  figures from the output of benchmarks
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
	// run. Less is worse.
	Ratio Kind = "ratio"
	// Allocs is how many pieces of memory a placement allocates. More is worse.
	Allocs Kind = "allocs"
)

// Figure is what was measured of one case.
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

// History is all that figures have been, the oldest first.
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
	if kind != Ratio && kind != Allocs {
		return Entry{}, fmt.Errorf("kind %q is neither %s nor %s", fields[2], Ratio, Allocs)
	}
	value, err := strconv.ParseFloat(fields[4], 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 || kind == Ratio && value == 0 {
		return Entry{}, fmt.Errorf("value %q isn't a number above 0, or 0 allocations", fields[4])
	}
	return Entry{Figure{kind, fields[3], value}, day, fields[1]}, nil
}

// Write writes the file that Read reads.
func (h History) Write(w io.Writer) error {
	if _, err := fmt.Fprintln(w, header); err != nil {
		return err
	}
	for _, e := range h {
		value := strconv.FormatFloat(e.Value, 'g', 4, 64)
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Day.Format(time.DateOnly), e.Commit, e.Kind, e.Case, value); err != nil {
			return err
		}
	}
	return nil
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

// OfKind returns the entries of one kind.
func (h History) OfKind(k Kind) History {
	return slices.DeleteFunc(slices.Clone(h), func(e Entry) bool { return e.Kind != k })
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
