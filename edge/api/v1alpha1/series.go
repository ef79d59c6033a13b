package v1alpha1

import "time"

// Series are gauges over time, on one grid: value i is of From + i × Step.
type Series struct {
	At   time.Time `json:"at"`
	From time.Time `json:"from"`
	// Step is 10s, for the last 6 hours, or 5m, for the last 7 days.
	Step   Duration `json:"step"`
	Points int      `json:"points"`
	Lines  []Line   `json:"lines"`
}

// Line is one gauge.
type Line struct {
	// Name is one of GaugeNames.
	Name string `json:"name"`
	// Unit is pods, nodes, share, price or seconds.
	Unit string `json:"unit"`
	// Values are null where nothing was measured: Berth didn't lead.
	Values []*float64 `json:"values"`
}
