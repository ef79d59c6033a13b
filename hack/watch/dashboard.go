package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/berthproject/berth/edge/observe"
)

// This file writes the dashboard as Grafana imports it.

// variables are what the dashboard lets its reader choose beside the data source: each has one value, so that no
// panel adds up several clusters or several installations of Berth. Where Prometheus adds no label of a
// name, the variable is empty and matches that.
var variables = []string{"cluster", "namespace", "job"}

// ofSeries matches a metric of ours with its label matchers.
var ofSeries = regexp.MustCompile(ours.String() + `(?:\{([^}]*)\})?`)

// selecting returns an expression whose metrics are those of the dashboard's variables.
// Label matchers that an expression has stay.
func selecting(expr string) string {
	return ofSeries.ReplaceAllStringFunc(expr, func(s string) string {
		name, given, _ := strings.Cut(strings.TrimSuffix(s, "}"), "{")
		all := matchers(variables)
		if given != "" {
			all = append(all, given)
		}
		return name + "{" + strings.Join(all, ", ") + "}"
	})
}

// matchers returns what matches the values of variables.
func matchers(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf(`%s="$%s"`, name, name))
	}
	return out
}

// dashboardOf returns the dashboard, with every metric of the list.
// A metric that no panel shows gets one at the end: none is left out.
func dashboardOf(list []observe.Metric) ([]byte, error) {
	used := map[string]bool{}
	for _, r := range rows {
		for _, p := range r.panels {
			for _, s := range p.series {
				if err := check(list, s.expr, used); err != nil {
					return nil, err
				}
			}
		}
	}
	others := row{title: "All other metrics", collapsed: true}
	for i := range list {
		if !used[list[i].Name] {
			others.panels = append(others.panels, panelOf(&list[i]))
		}
	}
	var l layout
	for _, r := range append(append([]row(nil), rows...), others) {
		l.add(r)
	}
	text, err := json.MarshalIndent(map[string]any{
		"title": "Berth", "uid": "berth", "tags": []string{"kubernetes", "berth"}, "schemaVersion": 39, "editable": true, "refresh": "30s",
		"description": "What Berth does in a cluster: pods, nodes, node groups and money. kubectl berth answers why.",
		"time":        map[string]string{"from": "now-6h", "to": "now"},
		"templating":  map[string]any{"list": templating()},
		"panels":      l.panels,
	}, "", " ")
	return append(text, '\n'), err
}

// templating returns the variables as Grafana has them: each lists what there is with the values of those
// before it.
// The first is the data source, so that the file can be imported anywhere.
func templating() []any {
	out := []any{map[string]any{"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus"}}
	for i, name := range variables {
		of := "berth_build_info"
		if i > 0 {
			of += "{" + strings.Join(matchers(variables[:i]), ", ") + "}"
		}
		query := fmt.Sprintf("label_values(%s, %s)", of, name)
		out = append(out, map[string]any{
			"name": name, "type": "query", "datasource": source, "definition": query, "query": map[string]any{"query": query, "refId": name},
			"refresh": 2, "sort": 1, "multi": false, "includeAll": false,
		})
	}
	return out
}

// source is the data source of everything.
var source = map[string]string{"type": "prometheus", "uid": "${datasource}"}

// layout puts rows below each other, on a grid of 24 columns.
type layout struct {
	panels []any
	// Grafana wants IDs that are unique in a dashboard.
	y, ids int
}

// add adds a row. Panels of a collapsed one are within it.
func (l *layout) add(r row) {
	l.ids++
	head := map[string]any{"type": "row", "title": r.title, "id": l.ids, "collapsed": r.collapsed, "gridPos": map[string]int{"x": 0, "y": l.y, "w": 24, "h": 1}}
	l.y++
	var within []any
	x := 0
	for i := range r.panels {
		width, height := r.panels[i].size()
		// The panel would not fit beside the others.
		if x+width > 24 {
			x, l.y = 0, l.y+height
		}
		l.ids++
		within = append(within, r.panels[i].json(l.ids, map[string]int{"x": x, "y": l.y, "w": width, "h": height}))
		x += width
	}
	if len(r.panels) > 0 {
		_, height := r.panels[len(r.panels)-1].size()
		l.y += height
	}
	// Grafana keeps the panels of a collapsed row inside of it.
	if r.collapsed {
		head["panels"] = within
		l.panels = append(l.panels, head)
		return
	}
	l.panels = append(append(l.panels, head), within...)
}

// size returns width and height of a panel. All panels of a row have the same.
func (p *panel) size() (width, height int) {
	if p.kind == stat {
		return 3, 4
	}
	return 12, 8
}

// panelOf returns a panel of one metric by its labels: a counter's increase in an hour, p50 and p99 of a
// histogram, the mean of a summary.
// Summaries have no quantiles that can be added up.
func panelOf(m *observe.Metric) panel {
	by, legend := "", m.Name
	if len(m.Labels) > 0 {
		by = " by (" + strings.Join(m.Labels, ", ") + ")"
		legend = "{{" + strings.Join(m.Labels, "}} {{") + "}}"
	}
	p := panel{kind: graph, title: m.Name, description: m.Help, unit: "short"}
	if strings.HasSuffix(m.Name, "_seconds") {
		p.unit = "s"
	}
	switch m.Type {
	case "counter":
		p.series = []series{{fmt.Sprintf("sum%s (increase(%s[1h]))", by, m.Name), legend}}
	case "histogram":
		p.series = quantilesBy(m)
	case "summary":
		p.series = []series{{fmt.Sprintf("sum%s (rate(%s_sum[15m])) / sum%s (rate(%s_count[15m]))", by, m.Name, by, m.Name), legend}}
	default:
		p.series = []series{{fmt.Sprintf("max%s (%s)", by, m.Name), legend}}
	}
	return p
}

// quantilesBy returns p50 and p99 of a histogram by its labels.
func quantilesBy(m *observe.Metric) []series {
	out := quantiles(m.Name, "15m")
	if len(m.Labels) == 0 {
		return out
	}
	for i := range out {
		out[i].expr = strings.Replace(out[i].expr, "by (le)", "by (le, "+strings.Join(m.Labels, ", ")+")", 1)
		out[i].legend += " {{" + strings.Join(m.Labels, "}} {{") + "}}"
	}
	return out
}

// json returns the panel as Grafana has it, at a place.
// Tables show the last value of each series.
func (p *panel) json(id int, place map[string]int) map[string]any {
	var targets []any
	names, hidden := map[string]string{}, map[string]bool{"Time": true}
	for i, s := range p.series {
		ref := string(rune('A' + i))
		target := map[string]any{"refId": ref, "datasource": source, "expr": selecting(s.expr), "legendFormat": s.legend}
		if p.kind == table {
			target["format"], target["instant"] = "table", true
			names["Value #"+ref], names["Value"] = s.legend, p.series[0].legend
		}
		targets = append(targets, target)
	}
	out := map[string]any{
		"id": id, "type": p.kind, "title": p.title, "description": p.description, "datasource": source, "targets": targets,
		"gridPos": place, "fieldConfig": map[string]any{"defaults": map[string]string{"unit": p.unit}, "overrides": []any{}},
	}
	switch p.kind {
	case table:
		out["transformations"] = []any{map[string]any{"id": "merge", "options": map[string]any{}},
			map[string]any{"id": "organize", "options": map[string]any{"excludeByName": hidden, "renameByName": names}}}
	case stat:
		out["options"] = map[string]any{"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}}, "graphMode": "area", "colorMode": "none"}
	}
	return out
}
