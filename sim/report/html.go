package report

import (
	"bufio"
	_ "embed" // the page and the chart library
	"errors"
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

var (
	//go:embed assets/page.html
	pageText string
	//go:embed assets/uplot.js
	libraryText string
	//go:embed assets/uplot.css
	libraryCSS string
)

var page = template.Must(template.New("page").Parse(pageText))

// fact is a number at the head of the page.
type fact struct {
	Label, Value, Note string
	Bad                bool
}

// series are the samples by column, as the page's script takes them.
type series struct {
	At        []float64    `json:"at"`
	Pending   []int        `json:"pending"`
	Bound     []int        `json:"bound"`
	Running   []int        `json:"running"`
	Launching []int        `json:"launching"`
	Starting  []int        `json:"starting"`
	Ready     []int        `json:"ready"`
	Draining  []int        `json:"draining"`
	CPU       []float64    `json:"cpu"`
	Memory    []float64    `json:"memory"`
	Cost      []float64    `json:"cost"`
	Price     []float64    `json:"price"`
	Writes    []float64    `json:"writes"` // GB/s
	Kinds     []string     `json:"kinds"`
	Decisions []decision   `json:"decisions"`
	Left      int          `json:"left"`
	Timeline  timelineData `json:"timeline"`
}

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
type timelineData struct {
	At    []float64 `json:"at"`
	Lanes [][]*int  `json:"lanes"`
}

// The page stays of a size that a browser likes.
const (
	mostSamples   = 1500
	mostDecisions = 4000
)

// HTML writes one self-contained page about a run.
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

func facts(s *scenario.Summary) []fact {
	return []fact{
		{"pods completed", number(s.Pods.Completed), fmt.Sprintf("of %d", s.Pods.Total), false},
		{"pods pending in the end", number(s.Pods.Pending), later(s), s.Pods.Pending+s.Pods.ToCome > 0},
		{"arrival to bound, p50", span(s.TimeToBound.P50), "p99 " + span(s.TimeToBound.P99), false},
		{"arrival to running, p50", span(s.TimeToRunning.P50), "p99 " + span(s.TimeToRunning.P99), false},
		{"last pod running after", span(s.TimeToRunning.Max), "", false},
		{"nodes at the peak", number(s.Nodes.Peak), "", false},
		{"launched", number(s.Nodes.Launched), fmt.Sprintf("%d failed", s.Nodes.FailedLaunches), s.Nodes.FailedLaunches > 0},
		{"churn", number(s.Churn), "nodes gone within 15 min", false},
		{"node hours", fmt.Sprintf("%.1f", s.NodeHours), "", false},
		{"cost", fmt.Sprintf("%.2f", s.Cost), "", false},
		{"utilisation, cpu", percent(s.Utilization.CPU), "memory " + percent(s.Utilization.Memory), false},
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

func columns(stats *sim.Stats) *series {
	d := &series{Kinds: []string{}, Decisions: []decision{}}
	step := (len(stats.Samples) + mostSamples - 1) / mostSamples
	for i := range stats.Samples {
		if i%max(step, 1) != 0 && i != len(stats.Samples)-1 {
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
	d.decide(stats.Log)
	return d
}

// decide adds the decisions: few of the many placements, all of the rest as
// far as there is room.
func (d *series) decide(log []step.Decision) {
	var placed, other []int
	for i := range log {
		if log[i].Kind == step.Placed {
			placed = append(placed, i)
		} else {
			other = append(other, i)
		}
	}
	keep := other[:min(len(other), mostDecisions*3/4)]
	room := mostDecisions - len(keep)
	step := (len(placed) + room - 1) / max(room, 1)
	for k, i := range placed {
		if k%max(step, 1) == 0 {
			keep = append(keep, i)
		}
	}
	slices.Sort(keep)
	d.Left = len(log) - len(keep)
	lane := map[string]int{}
	for _, i := range keep {
		x := &log[i]
		if _, ok := lane[string(x.Kind)]; !ok {
			lane[string(x.Kind)] = 0
			d.Kinds = append(d.Kinds, string(x.Kind))
		}
	}
	slices.Sort(d.Kinds)
	for i, k := range d.Kinds {
		lane[k] = i
	}
	d.Timeline.At = []float64{}
	d.Timeline.Lanes = make([][]*int, len(d.Kinds))
	for _, i := range keep {
		x := &log[i]
		why := x.Reason
		if x.Nodes > 0 {
			why = strings.TrimSuffix(fmt.Sprintf("%d nodes: %s", x.Nodes, why), ": ")
		}
		t := x.Time.Sub(sim.Epoch).Seconds()
		d.Decisions = append(d.Decisions, decision{t, string(x.Kind), x.Pod, x.Node, x.Group, why})
		if n := len(d.Timeline.At); n == 0 || d.Timeline.At[n-1] != t {
			d.Timeline.At = append(d.Timeline.At, t)
			for k := range d.Timeline.Lanes {
				d.Timeline.Lanes[k] = append(d.Timeline.Lanes[k], nil)
			}
		}
		k := lane[string(x.Kind)]
		d.Timeline.Lanes[k][len(d.Timeline.At)-1] = &k
	}
	for k := range d.Timeline.Lanes {
		if d.Timeline.Lanes[k] == nil {
			d.Timeline.Lanes[k] = []*int{}
		}
	}
}
