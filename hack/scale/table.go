package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// growth is what was measured, of which a table and a picture are made.
type growth struct {
	*options
	values map[string]map[int]float64 // of figures, by their keys and by nodes
}

// add adds the figures of one part at one size.
func (g *growth) add(nodes int, figures map[string]float64) {
	for key, v := range figures {
		if g.values[key] == nil {
			g.values[key] = map[int]float64{}
		}
		g.values[key][nodes] = v
	}
}

// The assumptions by which the largest cluster is reckoned.
const (
	memoryGiB       = 24
	lifetimeSeconds = 3600
	scanSeconds     = 10
	shareOfCore     = 0.5
)

// table returns the table with what follows from it, in Markdown.
func (g *growth) table() string {
	var out strings.Builder
	out.WriteString("| | goal |")
	for _, n := range g.nodes {
		fmt.Fprintf(&out, " %s nodes, %s pods |", thousands(n), thousands(n*g.podsPerNode))
	}
	out.WriteString(" exponent |\n|---|---|" + strings.Repeat("---|", len(g.nodes)+1) + "\n")
	for _, p := range g.parts {
		for _, f := range p.figures {
			text := strings.ReplaceAll(f.text, "CLASSES", thousands(g.classes))
			fmt.Fprintf(&out, "| %s | %s |", text, f.goal)
			for _, n := range g.nodes {
				if v, ok := g.values[f.key][n]; ok {
					fmt.Fprintf(&out, " %s |", strings.TrimSpace(number(v)+" "+f.unit))
				} else {
					out.WriteString(" – |")
				}
			}
			exponent := ""
			if l, ok := fit(g.values[f.key]); ok {
				exponent = strconv.FormatFloat(l.exponent, 'f', 2, 64)
			}
			fmt.Fprintf(&out, " %s |\n", exponent)
		}
	}
	if text := g.limits(); text != "" {
		out.WriteString("\n" + text)
	}
	return out.String()
}

// limits says how large a cluster may be, by what was measured of scheduler and autoscaler
// together and of the core; "" when that wasn't measured at two sizes. Memory is reckoned in
// proportion from the largest size measured, time by the fitted laws.
func (g *growth) limits() string {
	changed, ok := fit(g.values["together changed"])
	pod, both := fit(g.values["core pod"])
	if !ok || !both {
		return ""
	}
	most := slices.Max(slices.Collect(maps.Keys(g.values["together peak"])))
	perNode := g.values["together peak"][most] / float64(most) // GiB
	load := func(nodes float64) float64 {
		return nodes*float64(g.podsPerNode)/lifetimeSeconds*pod.at(nodes)/1e6 + changed.at(nodes)/scanSeconds
	}
	inMemory := memoryGiB / perNode
	onCore := largest(load, shareOfCore, 1e9)
	return fmt.Sprintf("**Memory.** %d GiB are enough for %s nodes with %s pods, if the most memory of the process that schedules and scales grows in proportion from %s nodes on, the largest size measured.\n\n"+
		"**One core.** Deciding takes %.0f %% of a core at %s nodes with %s pods%s, if each pod lives for an hour and another comes then, and each scan, one every %d seconds, finds 1 %% of the nodes changed. At %s nodes it takes %s %%. The calls to the API aren't in it.\n",
		memoryGiB, round(inMemory), round(inMemory*float64(g.podsPerNode)), thousands(most),
		shareOfCore*100, round(onCore), round(onCore*float64(g.podsPerNode)), beyond(onCore, most), scanSeconds,
		thousands(most), number(100*load(float64(most))))
}

// beyond returns a note for a size that is larger than what was measured; "" for one that isn't.
func beyond(nodes float64, most int) string {
	if nodes <= float64(most) {
		return ""
	}
	return fmt.Sprintf(" (by the fits; %s times the largest size measured)", number(nodes/float64(most)))
}

// round returns a number with two digits that count.
func round(v float64) string {
	if v < 1 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return thousands(int(math.Floor(v/unit) * unit))
}

// number returns a number with two or three digits that count.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return thousands(int(math.Round(v)))
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// thousands returns a whole number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
