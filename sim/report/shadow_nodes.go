package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
)

// This file puts what a shadow says about nodes into words.

// addNodes adds the tables and differences about nodes. Until the provider has listed its
// groups there is nothing to compare, and a note says so in their place.
//
// What is saved is estimated: the node hours of the cluster as it would be if Berth's additions and
// removals had been carried out, priced like the nodes that there are.
func (v *shadowView) addNodes(r *core.ShadowNodes) {
	if r.Since.IsZero() {
		v.Notes = append(v.Notes, "the provider has not listed its node groups yet, so no nodes are compared")
		return
	}
	if len(r.Unpriced) > 0 {
		v.Notes = append(v.Notes, "the provider has no price for "+strings.Join(r.Unpriced, ", ")+": nodes of these groups count as free here")
	}
	since := " since " + r.Since.UTC().Format(time.DateTime)
	v.Tables = append(v.Tables,
		shadowTable{Title: "Nodes added" + since, Head: []string{"by", "nodes"}, Rows: [][]string{
			{"both", number(r.Verdicts[step.BoughtByBoth])},
			{"only Berth (would have)", number(r.Verdicts[step.BoughtOnlyByBerth])},
			{"only the other autoscaler", number(r.Verdicts[step.BoughtOnlyByOther])},
			{"undecided: Berth would have, and the other autoscaler still may", number(r.Buying)},
			{"for both, mean time by which Berth was earlier", wait(r.BoughtAhead)},
		}},
		shadowTable{Title: "Nodes removed" + since, Head: []string{"by", "nodes"}, Rows: [][]string{
			{"both", number(r.Verdicts[step.RemovedByBoth])},
			{"only Berth (would have): the other autoscaler keeps the node, or kept it until it was needed again", number(r.Verdicts[step.RemovedOnlyByBerth])},
			{"only the other autoscaler", number(r.Verdicts[step.RemovedOnlyByOther])},
			{"  of these, also found unneeded by Berth, but not for long enough", number(r.Early)},
			{"undecided: Berth would have, and the other autoscaler still may", number(r.Removing)},
			{"needed again, of those that Berth would have removed", number(r.Again)},
			{"for both, mean time by which Berth was earlier", wait(r.RemovedAhead)},
		}},
		shadowTable{Title: "Node hours of all node groups" + since, Head: []string{"of", "node hours", "cost"}, Rows: [][]string{
			{"actual cluster", fmt.Sprintf("%.2f", r.Cluster.Hours), fmt.Sprintf("%.2f", r.Cluster.Cost)},
			{"Berth (estimated)", fmt.Sprintf("%.2f", r.Berth.Hours), fmt.Sprintf("%.2f", r.Berth.Cost)},
		}})
	for i := range r.Differences {
		v.NodeDifferences = append(v.NodeDifferences, nodeDifferenceOf(&r.Differences[i]))
	}
}

// nodeDifferenceOf puts a difference into words.
// Wished is zero where only the other autoscaler acted: Berth had no wish then.
func nodeDifferenceOf(c *step.NodeComparison) shadowDifference {
	d := shadowDifference{At: c.Time.UTC().Format("15:04:05.000")}
	switch c.Verdict {
	case step.BoughtOnlyByBerth:
		d.What = fmt.Sprintf("Berth would have added %d of %s", c.Nodes, c.Group)
	case step.BoughtOnlyByOther:
		d.What = fmt.Sprintf("the other autoscaler added %d of %s", c.Nodes, c.Group)
	case step.RemovedOnlyByBerth:
		d.What = fmt.Sprintf("Berth would have removed %s of %s", c.Node, c.Group)
	default:
		d.What = fmt.Sprintf("the other autoscaler removed %s of %s", c.Node, c.Group)
	}
	if c.Price > 0 {
		d.What += fmt.Sprintf(", $%.2f/h", c.Price)
	}
	if !c.Wished.IsZero() {
		d.Why = append(d.Why, "at "+c.Wished.UTC().Format(time.TimeOnly)+whatFor(c.Pods))
	}
	if c.Reason != "" {
		d.Why = append(d.Why, c.Reason)
	}
	return d
}

// whatFor names the pods that nodes were for; "" for none.
func whatFor(pods []string) string {
	if len(pods) == 0 {
		return ""
	}
	return ", for " + strings.Join(pods, ", ") + " and possibly others"
}
