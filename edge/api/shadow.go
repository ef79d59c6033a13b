package api

import (
	"errors"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers shadow: the report as the core keeps it, which is bounded by the core (the largest differences).
//
// What must hold: a difference whose pod may not be named is counted and left out whole, since its nodes and scores
// would tell what the pod is like; and nothing is left out of what `berth shadow report` prints as text.

// errNoShadow says why there is no report. It is a 404: the capability shadow in meta tells clients beforehand, so that
// none has to ask in order to learn it.
var errNoShadow = errors.New("this instance is not a shadow: it makes decisions and compares nothing; start a shadow with berth run --shadow")

// shadow answers shadow. Counts are those of all pods, whoever asks; only differences name some.
func (a *API) shadow(r *request) (any, error) {
	x, at, err := a.questions.of(r.Context(), "shadow", func(c *core.Core) (any, error) {
		report := c.ShadowReport()
		if report == nil {
			return nil, notFound{errNoShadow}
		}
		return report, nil
	})
	if err != nil {
		return nil, err
	}
	out := ShadowOf(x.(*core.ShadowReport), r.viewer.pod)
	out.At = at
	return out, nil
}

// ShadowOf returns a report as the API has it. It serves the API and the files that berth shadow report writes, so that a
// saved report can be shown as a live one. shown returns the name of a pod, "" for one that may not be
// shown.
func ShadowOf(x *core.ShadowReport, shown func(pod string) string) *v1alpha1.Shadow {
	out := &v1alpha1.Shadow{
		Since: x.Since.UTC(), Until: x.Until.UTC(), Compared: x.Compared, Agreement: v1alpha1.Share(x.Agreement()), Allowed: v1alpha1.Share(x.Allowed()),
		Short: x.Short, Overtaken: x.Overtaken, JudgedAgain: x.JudgedAgain, Waiting: x.Waiting, Doubted: x.Doubted,
		Earlier: v1alpha1.ShadowEarlier(x.Earlier), Other: shadowTimes(x.Other), Berth: shadowTimes(x.Berth), Differences: []v1alpha1.ShadowDifference{},
	}
	// Verdicts that never occurred are there with 0: a report that lacks one would leave open whether it was looked for.
	for _, verdict := range step.Verdicts {
		out.Verdicts = append(out.Verdicts, v1alpha1.VerdictCount{Verdict: string(verdict), Count: x.Verdicts[verdict]})
	}
	// The largest first, as the core keeps them; each with the scores of both nodes at the moment of the binding.
	for i := range x.Differences {
		c := &x.Differences[i]
		if shown(c.Pod) == "" {
			out.Hidden++
			continue
		}
		out.Differences = append(out.Differences, v1alpha1.ShadowDifference{
			Time: c.Time.UTC(), Pod: c.Pod, Verdict: string(c.Verdict), Node: c.Node, Score: c.Score, BerthNode: c.BerthNode, BerthScore: c.BerthScore,
			Plugin: c.Plugin, Reason: c.Reason, Scores: scores(c.Scores), BerthScores: scores(c.BerthScores), Took: duration(c.Took), Later: lasting(c.Later), Meanwhile: c.Meanwhile,
		})
		if e := c.Earlier; e != nil {
			out.Differences[len(out.Differences)-1].Earlier = &v1alpha1.ShadowDecision{Node: e.Node, Took: duration(e.Took), Why: e.Why, Fits: e.Fits, Score: e.Score, Now: e.Now, GaveUp: e.GaveUp}
		}
	}
	if n := x.Nodes; n != nil {
		out.Nodes = shadowNodes(n, shown)
	}
	return out
}

// scores returns what each plugin gave a node, weighted: they add up to its score.
func scores(in []engine.PluginScore) (out []v1alpha1.PluginScore) {
	for _, s := range in {
		out = append(out, v1alpha1.PluginScore{Plugin: s.Plugin, Score: s.Score})
	}
	return out
}

// shadowTimes returns how long pods took to get a node, as quantiles of those that were compared; all are 0 when none
// was.
func shadowTimes(q core.ShadowQuantiles) v1alpha1.ShadowTimes {
	return v1alpha1.ShadowTimes{Pods: q.Pods, Max: duration(q.Max), P50: duration(q.P50), P90: duration(q.P90), P99: duration(q.P99)}
}

// lasting returns a duration, nil for none.
func lasting(d time.Duration) *v1alpha1.Duration {
	if d == 0 {
		return nil
	}
	out := duration(d)
	return &out
}

// shadowNodes returns what was compared of nodes, with the names of pods that may be shown.
func shadowNodes(n *core.ShadowNodes, shown func(pod string) string) *v1alpha1.ShadowNodes {
	hours := func(h core.ShadowHours) v1alpha1.ShadowHours {
		return v1alpha1.ShadowHours{Hours: h.Hours, Cost: v1alpha1.Price(h.Cost)}
	}
	out := &v1alpha1.ShadowNodes{
		Since: n.Since.UTC(), Buying: n.Buying, Removing: n.Removing, Early: n.Early, Again: n.Again, BoughtAhead: duration(n.BoughtAhead), RemovedAhead: duration(n.RemovedAhead),
		Cluster: hours(n.Cluster), Berth: hours(n.Berth), Unpriced: n.Unpriced, Differences: []v1alpha1.ShadowNodeDifference{},
	}
	// In the order in which the text of the report has them.
	for _, verdict := range step.NodeVerdicts {
		out.Verdicts = append(out.Verdicts, v1alpha1.VerdictCount{Verdict: string(verdict), Count: n.Verdicts[verdict]})
	}
	for i := range n.Differences {
		c := &n.Differences[i]
		d := v1alpha1.ShadowNodeDifference{Time: c.Time.UTC(), Verdict: string(c.Verdict), Group: c.Group, Nodes: c.Nodes, Node: c.Node, Price: v1alpha1.Price(c.Price), Reason: c.Reason, Ahead: lasting(c.Ahead)}
		// The zero time is no time of year 1 in UTC.
		if !c.Wished.IsZero() {
			d.Wished = c.Wished.UTC()
		}
		// A node is no pod's secret: the difference stays, with those of its pods that may be named.
		for _, pod := range c.Pods {
			if shown(pod) != "" {
				d.Pods = append(d.Pods, pod)
			}
		}
		out.Differences = append(out.Differences, d)
	}
	return out
}
