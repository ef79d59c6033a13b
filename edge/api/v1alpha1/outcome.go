package v1alpha1

import "time"

// OutcomeList is what came of the runs that a file has: first of the one that all other answers are of, then of
// those that it is compared with.
type OutcomeList struct {
	Items []Outcome `json:"items"`
}

// Outcome is what came of one run, of a simulation or a recording.
type Outcome struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Seed        uint64 `json:"seed,omitempty"`
	// Digest is that of all decisions: runs with equal ones have decided the same.
	Digest string    `json:"digest,omitempty"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	// Facts are the figures that matter most, Rows all of the summary.
	Facts []Fact `json:"facts"`
	Rows  []Fact `json:"rows"`
	// Times are those of the values of Lines, in seconds since From, and rise.
	Times []float64 `json:"times"`
	Lines []Line    `json:"lines"`
	// Lanes are all decisions over time, by kind.
	Lanes []Lane `json:"lanes"`
}

// Fact is one figure of an outcome. Outcomes have the same facts in the same order; the rows at the end, about
// decisions, are of the kinds that there are.
type Fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Note  string `json:"note,omitempty"`
	// Bad says that it is a reason to look closer.
	Bad bool `json:"bad,omitempty"`
}

// Lane is how many decisions of one kind were made when.
type Lane struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// At are the seconds since From at which a part of Step seconds begins that has some, and Counts how many
	// it has.
	Step   float64   `json:"step"`
	At     []float64 `json:"at"`
	Counts []int     `json:"counts"`
}
