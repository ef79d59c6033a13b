package report

import (
	"bufio"
	_ "embed" // the page and the chart library
	"errors"
	"fmt"
	"html/template"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// This file writes the page with plots. It is one file that needs no network: the script,
// the chart library and the data are in it. What must hold: it stays of a size that a
// browser likes, however long the run was (maxSamples, maxDecisions), and what was left
// out is counted on it.

var (
	//go:embed assets/shared.html
	sharedText string
	//go:embed assets/page.html
	pageText string
	//go:embed assets/uplot.js
	libraryText string
	//go:embed assets/uplot.css
	libraryCSS string
)

// shared has what pages have in common: their looks, and the numbers at their head.
var (
	shared = template.Must(template.New("shared").Parse(sharedText))
	page   = template.Must(template.Must(shared.Clone()).New("page").Parse(pageText))
)

// fact is a number at the head of the page.
type fact struct {
	Label, Value, Note string
	Bad                bool // shown as a warning
}

// series are the samples by column, as the page's script takes them.
//
// All columns but kinds, decisions and the timeline have an entry for each sample, so that index i is the same
// instant in all. The keys are read by assets/page.html: whoever renames one renames it there, too.
type series struct {
	// Seconds of virtual time since the beginning.
	At []float64 `json:"at"`
	// Pods by state. Those that have completed are in none.
	Pending []int `json:"pending"`
	Bound   []int `json:"bound"`
	Running []int `json:"running"`
	// Instances by state, which the page stacks.
	Launching []int `json:"launching"`
	Starting  []int `json:"starting"`
	Ready     []int `json:"ready"`
	Draining  []int `json:"draining"`
	// Requested shares of what ready nodes have allocatable, from 0 to 1.
	CPU    []float64 `json:"cpu"`
	Memory []float64 `json:"memory"`
	// Cost is the money so far, Price what the nodes of this instant cost in an hour.
	Cost   []float64 `json:"cost"`
	Price  []float64 `json:"price"`
	Writes []float64 `json:"writes"` // GB/s
	// The kinds of the decisions below, sorted: each is a lane of the timeline.
	Kinds     []string     `json:"kinds"`
	Decisions []decision   `json:"decisions"`
	Left      int          `json:"left"` // how many decisions were left out
	Timeline  timelineData `json:"timeline"`
}

// decision is a row of the page's table. T is in seconds of virtual time.
type decision struct {
	T     float64 `json:"t"`
	Kind  string  `json:"kind"`
	Pod   string  `json:"pod,omitempty"`
	Node  string  `json:"node,omitempty"`
	Group string  `json:"group,omitempty"`
	Why   string  `json:"why,omitempty"`
}

// timelineData has, for each instant with a decision, a mark in the lane of
// each kind that was decided then.
//
// The chart library wants its x values rising and without repetition, and one column per lane: a
// mark is the number of its lane, which is its height, and null draws nothing.
type timelineData struct {
	At    []float64 `json:"at"`
	Lanes [][]*int  `json:"lanes"`
}

// What a page has at most, of samples and of decisions.
const (
	maxSamples   = 1500
	maxDecisions = 4000
)

// HTML writes one self-contained page about a run. The file is replaced first: after an error
// what is there is incomplete.
func HTML(path string, run *scenario.Run, s *scenario.Summary, stats *sim.Stats) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	data := columns(stats)
	if err := page.Execute(out, map[string]any{
		"Title": s.Name, "Description": run.Description, "Seed": s.Seed, "Digest": s.Digest,
		"Facts": facts(s), "Writes": s.PeakWriteRate > 0, "Data": data,
		"Library": template.JS(libraryText), "LibraryCSS": template.CSS(libraryCSS),
	}); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return out.Flush()
}

// facts are the numbers at the head of the page, in its order.
func facts(s *scenario.Summary) []fact {
	return []fact{
		{"pods completed", number(s.Pods.Completed), fmt.Sprintf("of %d", s.Pods.Total), false},
		{"pods pending at the end", number(s.Pods.Pending), later(s), s.Pods.Pending+s.Pods.ToCome > 0},
		{"arrival to bound, p50", span(s.TimeToBound.P50), "p99 " + span(s.TimeToBound.P99), false},
		{"arrival to running, p50", span(s.TimeToRunning.P50), "p99 " + span(s.TimeToRunning.P99), false},
		{"last pod running after", span(s.TimeToRunning.Max), "", false},
		{"nodes at the peak", number(s.Nodes.Peak), "", false},
		{"launched", number(s.Nodes.Launched), fmt.Sprintf("%d failed, %d cancelled", s.Nodes.FailedLaunches, s.Nodes.CancelledLaunches), s.Nodes.FailedLaunches > 0},
		{"churn", number(s.Churn), "nodes removed within 15 min", false},
		{"node hours", fmt.Sprintf("%.1f", s.NodeHours), "", false},
		{"cost", fmt.Sprintf("%.2f", s.Cost), "", false},
		{"utilization, cpu", percent(s.Utilization.CPU), "memory " + percent(s.Utilization.Memory), false},
		{"evicted", number(s.Pods.Evicted), fmt.Sprintf("%d budget violations", s.PDBViolations), s.PDBViolations > 0},
	}
}

// later says how many pods the run ended before; "" for none.
func later(s *scenario.Summary) string {
	if s.Pods.ToCome == 0 {
		return ""
	}
	return fmt.Sprintf("%d still to come", s.Pods.ToCome)
}

// columns returns every so many-th sample and the last, and the decisions.
// The last sample is always there: the plots end where the run does.
func columns(stats *sim.Stats) *series {
	d := &series{Kinds: []string{}, Decisions: []decision{}}
	every := max((len(stats.Samples)+maxSamples-1)/maxSamples, 1)
	for i := range stats.Samples {
		if i%every != 0 && i != len(stats.Samples)-1 {
			continue
		}
		x := &stats.Samples[i]
		d.At = append(d.At, x.At.Seconds())
		d.Pending, d.Bound, d.Running = append(d.Pending, x.Pending), append(d.Bound, x.Bound), append(d.Running, x.Running)
		d.Launching, d.Starting = append(d.Launching, x.Launching), append(d.Starting, x.Starting)
		d.Ready, d.Draining = append(d.Ready, x.Ready), append(d.Draining, x.Draining)
		d.CPU, d.Memory = append(d.CPU, x.CPU), append(d.Memory, x.Memory)
		d.Cost, d.Price, d.Writes = append(d.Cost, x.Cost), append(d.Price, x.Price), append(d.Writes, x.WriteRate/1e9)
	}
	d.addDecisions(stats.Log)
	return d
}

// addDecisions adds the decisions that the page has room for, in order of time: of the
// placements, which are many, every so many-th, and of the others the first.
func (d *series) addDecisions(log []step.Decision) {
	kept := thinned(log)
	d.Left = len(log) - len(kept)
	kinds := map[string]bool{}
	for _, x := range kept {
		kinds[string(x.Kind)] = true
	}
	d.Kinds = slices.AppendSeq(d.Kinds, maps.Keys(kinds))
	slices.Sort(d.Kinds)
	d.Timeline = timelineData{At: []float64{}, Lanes: make([][]*int, len(d.Kinds))}
	for lane := range d.Timeline.Lanes {
		d.Timeline.Lanes[lane] = []*int{}
	}
	for _, x := range kept {
		why := x.Reason
		if x.Nodes > 0 {
			why = strings.TrimSuffix(fmt.Sprintf("%d nodes: %s", x.Nodes, why), ": ")
		}
		at := x.Time.Sub(sim.Epoch).Seconds()
		d.Decisions = append(d.Decisions, decision{at, string(x.Kind), x.Pod, x.Node, x.Group, why})
		d.Timeline.mark(at, slices.Index(d.Kinds, string(x.Kind)))
	}
}

// thinned returns at most maxDecisions of the decisions, in their order. Placements get at least a
// quarter of the room: they show the rhythm of the run, while each of the others is worth reading
// for itself.
func thinned(log []step.Decision) []*step.Decision {
	var placed, kept []int
	for i := range log {
		switch {
		case log[i].Kind == step.Placed:
			placed = append(placed, i)
		case len(kept) < maxDecisions*3/4:
			kept = append(kept, i)
		}
	}
	room := maxDecisions - len(kept)
	every := max((len(placed)+room-1)/room, 1)
	for k := 0; k < len(placed); k += every {
		kept = append(kept, placed[k])
	}
	slices.Sort(kept)
	out := make([]*step.Decision, len(kept))
	for k, i := range kept {
		out[k] = &log[i]
	}
	return out
}

// mark puts a mark into a lane at a time that isn't before the last mark's.
// Two decisions of one kind at one instant share a mark.
func (d *timelineData) mark(at float64, lane int) {
	if n := len(d.At); n == 0 || d.At[n-1] != at {
		d.At = append(d.At, at)
		for k := range d.Lanes {
			d.Lanes[k] = append(d.Lanes[k], nil)
		}
	}
	d.Lanes[lane][len(d.At)-1] = &lane
}
