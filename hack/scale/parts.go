package main

import (
	"context"
	"slices"
)

// part is a piece of Berth that is measured by itself.
type part struct {
	name    string
	measure func(context.Context, task, *meter) error
	figures []figure // with "NAME peak" at the end, which the parent adds
}

// figure is one row of the table. No number here is checked against its goal: people read both.
type figure struct {
	// key is unique among all parts; plots and the reckoning of the largest cluster name it, too.
	key  string
	text string // what it is; CLASSES and PODS stand for the options' numbers
	unit string
	goal string // "" for none
}

// withPeak adds the row for the memory of the part's process.
func (p part) withPeak(goal string) part {
	p.figures = append(slices.Clip(p.figures), figure{key: p.name + " peak", text: "… the most memory of that process", unit: "GiB", goal: goal})
	return p
}

// parts are in the order of the table.
var parts = []part{
	part{"engine", measureEngine, []figure{
		{"engine one", "**engine**: a placement, one class", "µs", "exponent ≤ 0.3"},
		{"engine many", "… CLASSES classes of eight shapes in turn", "µs", ""},
		{"engine first", "… the first pod of a new shape", "ms", ""},
	}}.withPeak(""),
	part{"core", measureCore, []figure{
		{"core total", "**core**: all nodes and pods of CLASSES classes through Steps, until all are bound", "s", "≤ 60 s at 100,000 nodes"},
		{"core pod", "… of it for each pod, when the classes take turns", "µs", ""},
	}}.withPeak("≤ 12 GiB at 100,000 nodes"),
	part{"scale-up", measureScaleUp, []figure{
		{"scale-up plan", "**scale-up**: a plan for all pods of CLASSES classes at once, 100 groups without nodes", "s", ""},
		{"scale-up nodes", "… nodes that it buys", "", ""},
	}}.withPeak(""),
	part{"adversary", measureAdversary, []figure{
		{"adversary refused", "**adversary**: a plan for a class of pods for each node, up to 20,000, none of which 100 groups with 20 DaemonSets take", "s", "≤ 2 s at 5,000 nodes"},
		{"adversary cost", "… by cost, for a class for every five nodes, up to 2,000, that all of 300 groups take", "s", "≤ 3 s at 5,000 nodes"},
		{"adversary tenants", "… for a class for every twelve nodes, up to 1,600, each with a group of its own", "s", "≤ 1 s at 5,000 nodes"},
	}}.withPeak(""),
	part{"scale-down", measureScaleDown, []figure{
		{"scale-down first", "**scale-down**: the first pass over nodes that are all used by two fifths", "s", ""},
		{"scale-down next", "… the next, with 1 % of the nodes changed", "s", ""},
		{"scale-down removable", "… nodes that could be removed together", "", ""},
	}}.withPeak(""),
	part{"together", measureTogether, []figure{
		{"together fill", "**scheduler and autoscaler together**: through Steps for each pod, when a class's pods come in a row", "µs", ""},
		{"together scan", "… the first scan of the full cluster", "s", ""},
		{"together idle", "… a scan after which nothing has changed", "ms", ""},
		{"together changed", "… a scan with 1 % of the nodes changed", "s", ""},
		{"together node", "… live memory for each node", "KiB", ""},
		{"together pod", "… live memory for each pod", "KiB", ""},
	}}.withPeak(""),
	part{"late", measureLate, []figure{
		{"late step", "**late instances**: a Step in which 3,000 instances of 300 groups, ordered together, are late", "s", "≤ 0.1 s at 5,000 nodes"},
	}}.withPeak(""),
	part{"booking", measureBooking, []figure{
		{"booking made", "**booking**: a request for ten pods for each node, up to 50,000, from the attempt until room is kept for all", "s", "exponent ≤ 1.1"},
		{"booking used", "… its pods arrive and are bound", "s", ""},
	}}.withPeak(""),
	part{"simulator", measureSimulator, []figure{
		{"simulator total", "**simulator**: nine tenths of the nodes are there, all pods arrive within five minutes and fill all, ten minutes are played", "s", ""},
		{"simulator pod", "… of it for each pod", "µs", ""},
	}}.withPeak(""),
	part{"spread", measureSpread, []figure{
		{"spread total", "**spread apps, simulated**: three apps of ten pods for every ten nodes, each with its own hard zone spread and node affinity, arrive at once on no node", "s", "≤ 3 s for 300 apps"},
		{"spread pod", "… of it for each pod", "ms", ""},
	}}.withPeak(""),
}
