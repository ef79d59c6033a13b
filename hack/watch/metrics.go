package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/berthproject/berth/edge/observe"
)

// This file finds the metrics that an expression is over.

var ours = regexp.MustCompile(`\b(?:scheduler|cluster_autoscaler|berth|dynamic_resource_allocation)_[a-z0-9_]+`)

// check refuses an expression over a metric of ours that isn't in the list. used records
// those that are.
func check(list []observe.Metric, expr string, used map[string]bool) error {
	for _, name := range ours.FindAllString(expr, -1) {
		m := find(list, name)
		if m == nil {
			return fmt.Errorf("the expression %s is over %s, which isn't in the list of metrics", expr, name)
		}
		used[m.Name] = true
	}
	return nil
}

// find returns the metric of which a name is, with the suffixes of histograms and summaries; nil
// for none.
func find(list []observe.Metric, name string) *observe.Metric {
	for i := range list {
		m := &list[i]
		if m.Name == name {
			return m
		}
		rest, is := strings.CutPrefix(name, m.Name)
		if is && (m.Type == "histogram" && rest == "_bucket" || (m.Type == "histogram" || m.Type == "summary") && (rest == "_sum" || rest == "_count")) {
			return m
		}
	}
	return nil
}
