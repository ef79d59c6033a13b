package term

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
)

// This file reads reports of shadows: answers of the API, and files.

// ReadShadow reads a report that was saved with -o json; from says where it was found. Earlier versions saved it in
// another form, which is read, too.
func ReadShadow(raw []byte, from string) (*v1alpha1.Shadow, error) {
	head := struct {
		Kind string `json:"kind"`
	}{}
	if err := json.Unmarshal(raw, &head); err != nil || head.Kind != "Shadow" {
		old, err := observe.ReadShadowReport(raw, from)
		if err != nil {
			return nil, err
		}
		out := api.ShadowOf(&old.ShadowReport, func(pod string) string { return pod })
		out.At = old.At.UTC()
		return out, nil
	}
	out := &v1alpha1.Shadow{}
	if err := Decode(raw, out); err != nil {
		return nil, fmt.Errorf("reading the report of %s: %w; it must be one saved with berth shadow report -o json", from, err)
	}
	return out, nil
}

// ShadowOf returns a report as it is printed (sim/report).
func ShadowOf(x *v1alpha1.Shadow) *core.ShadowReport {
	out := &core.ShadowReport{ShadowPods: core.ShadowPods{
		Since: x.Since, Until: x.Until, Compared: x.Compared, Verdicts: map[step.Verdict]int{}, Short: x.Short, Overtaken: x.Overtaken, JudgedAgain: x.JudgedAgain,
		Waiting: x.Waiting, Doubted: x.Doubted, Other: timesOf(x.Other), Berth: timesOf(x.Berth),
	}}
	e := x.Earlier
	out.Earlier.Decided, out.Earlier.NoNode, out.Earlier.NotYet, out.Earlier.Same = e.Decided, e.NoNode, e.NotYet, e.Same
	out.Earlier.Equal, out.Earlier.Better, out.Earlier.Worse, out.Earlier.NoMore = e.Equal, e.Better, e.Worse, e.NoMore
	for _, v := range x.Verdicts {
		out.Verdicts[step.Verdict(v.Verdict)] = v.Count
	}
	for i := range x.Differences {
		d := &x.Differences[i]
		c := step.Comparison{Time: d.Time, Pod: d.Pod, Verdict: step.Verdict(d.Verdict), Node: d.Node, Score: d.Score, BerthNode: d.BerthNode, BerthScore: d.BerthScore,
			Plugin: d.Plugin, Reason: d.Reason, Scores: scoresOf(d.Scores), BerthScores: scoresOf(d.BerthScores), Took: d.Took.Duration, Later: lasted(d.Later), Meanwhile: d.Meanwhile}
		if e := d.Earlier; e != nil {
			c.Earlier = &step.Earlier{Node: e.Node, Score: e.Score, Took: e.Took.Duration, Why: e.Why, Fits: e.Fits, Now: e.Now, GaveUp: e.GaveUp}
		}
		out.Differences = append(out.Differences, c)
	}
	if x.Nodes != nil {
		out.Nodes = shadowNodesOf(x.Nodes)
	}
	return out
}

func shadowNodesOf(x *v1alpha1.ShadowNodes) *core.ShadowNodes {
	out := &core.ShadowNodes{Since: x.Since, Verdicts: map[step.NodeVerdict]int{}, Buying: x.Buying, Removing: x.Removing, Early: x.Early, Again: x.Again,
		BoughtAhead: x.BoughtAhead.Duration, RemovedAhead: x.RemovedAhead.Duration, Unpriced: x.Unpriced,
		Cluster: core.ShadowHours{Hours: x.Cluster.Hours, Cost: float64(x.Cluster.Cost)}, Berth: core.ShadowHours{Hours: x.Berth.Hours, Cost: float64(x.Berth.Cost)}}
	for _, v := range x.Verdicts {
		out.Verdicts[step.NodeVerdict(v.Verdict)] = v.Count
	}
	for _, d := range x.Differences {
		out.Differences = append(out.Differences, step.NodeComparison{Time: d.Time, Verdict: step.NodeVerdict(d.Verdict), Group: d.Group, Nodes: d.Nodes, Node: d.Node, Price: float64(d.Price),
			Wished: d.Wished, Ahead: lasted(d.Ahead), Pods: d.Pods, Reason: d.Reason})
	}
	return out
}

func timesOf(x v1alpha1.ShadowTimes) core.ShadowQuantiles {
	return core.ShadowQuantiles{Pods: x.Pods, P50: x.P50.Duration, P90: x.P90.Duration, P99: x.P99.Duration, Max: x.Max.Duration}
}

func scoresOf(in []v1alpha1.PluginScore) (out []engine.PluginScore) {
	for _, s := range in {
		out = append(out, engine.PluginScore{Plugin: s.Plugin, Score: s.Score})
	}
	return out
}

// lasted returns a duration, 0 for none.
func lasted(d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}
