package engine

// This file holds the diagnosis. The engine makes one when a class fits on no node
// (diagnose.go); the waiting class in core/queue keeps it, and asks the engine with
// it whether a change helps (wake.go). Nobody writes to a diagnosis that another may
// have seen: who learns more makes a new one, and hands it on.

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berthproject/berth/core/framework"
)

// Diagnosis says why a class fits on no node. It is a value, passed by pointer
// because it is large: no method changes it, and what its accessors return must not
// be written to.
type Diagnosis struct {
	nodes      int
	everywhere *framework.Reason
	counts     []Count
	outside    bool
	// hinting are the plugins whose hints decide at which changes the class is
	// evaluated: those of which a group rule is known to reject some node. Such an
	// answer may change without the node being touched.
	hinting    pluginSet
	preemption Preemption
}

// Preemption is what is known of preemption for a class that fits on no node. The
// zero value says that nothing is known.
type Preemption struct {
	RuledOut bool   // taking the place of other pods doesn't help either
	Message  string // why not, in kube-scheduler's words; "" when there is nothing to say
}

// Count is on how many nodes a message applies.
type Count struct {
	Message string
	Nodes   int
	Plugin  string
	Nearest *NearestShortfall // of what the message is about, nil when that is no quantity
}

// NearestShortfall is the smallest deficit on any node.
type NearestShortfall struct {
	framework.Deficit
	Node string
}

// Nodes returns how many nodes there were.
func (d *Diagnosis) Nodes() int { return d.nodes }

// Everywhere returns the reason that rejects the class on all nodes at once, nil
// when there is none.
func (d *Diagnosis) Everywhere() *framework.Reason { return d.everywhere }

// Counts returns the messages with their numbers of nodes, sorted as
// kube-scheduler's message has them.
func (d *Diagnosis) Counts() []Count { return d.counts }

// Outside reports whether something beyond the rules, an extender, has rejected
// nodes: only another attempt can tell whether it still does.
func (d *Diagnosis) Outside() bool { return d.outside }

// Preemption returns what is known of preemption for the class.
func (d *Diagnosis) Preemption() Preemption { return d.preemption }

// LeavesNode reports whether the counts leave out a node: the class fits there. A node with several
// messages may hide another one.
func (d *Diagnosis) LeavesNode() bool {
	counted := 0
	for i := range d.counts {
		counted += d.counts[i].Nodes
	}
	return d.everywhere == nil && counted < d.nodes
}

// Message returns kube-scheduler's text: `0/N nodes are available: …`.
func (d *Diagnosis) Message() string { return d.MessageWith(d.preemption.Message) }

// MessageWith returns the text with another message about preemption, "" for none:
// for a pod that is nominated to a node, which differs in that from its class.
func (d *Diagnosis) MessageWith(preemption string) string {
	if d.nodes == 0 {
		return "no nodes available to schedule pods"
	}
	var room [512]byte // most texts fit, so that only the string is allocated
	text := strconv.AppendInt(append(room[:0], "0/"...), int64(d.nodes), 10)
	text = append(text, " nodes are available:"...)
	switch {
	case d.everywhere != nil:
		text = append(append(append(text, ' '), strings.Join(d.everywhere.Messages, ", ")...), '.')
	case len(d.counts) > 0:
		for i := range d.counts {
			if i > 0 {
				text = append(text, ',')
			}
			text = strconv.AppendInt(append(text, ' '), int64(d.counts[i].Nodes), 10)
			text = append(append(text, ' '), d.counts[i].Message...)
		}
		text = append(text, '.')
	}
	if preemption != "" {
		text = append(append(text, " preemption: "...), preemption...)
	}
	return string(text)
}

// WithPreemption returns the diagnosis with p as what is known of preemption.
func (d *Diagnosis) WithPreemption(p Preemption) *Diagnosis {
	if d.preemption == p {
		return d
	}
	out := *d
	out.preemption = p
	return &out
}

// maxOutside is how many messages from beyond the rules a diagnosis has beside those of the rules.
// The rules have few; an extender may have another for each node.
const maxOutside = 32

// WithOutside returns the diagnosis with what something beyond the rules said of
// nodes, one message a node, from plugin: with the maxOutside messages of the most nodes, and one
// for the nodes of all others. Any change may help such a class.
func (d *Diagnosis) WithOutside(plugin string, messages []string) *Diagnosis {
	counts := messageCounts{}
	for _, c := range d.counts {
		counts[c.Message] = &c
	}
	said := messageCounts{}
	for _, m := range messages {
		if c := counts[m]; c != nil {
			c.Nodes++
		} else {
			said.add(m, plugin)
		}
	}
	for _, c := range said.mostFrequent(maxOutside, plugin) {
		counts[c.Message] = &c
	}
	out := *d
	out.counts, out.outside = counts.sorted(), true
	return &out
}

// withHinting returns the diagnosis with another set of plugins whose hints count:
// d itself, without an allocation, when the set is the same.
func (d *Diagnosis) withHinting(s pluginSet) *Diagnosis {
	if s.equal(d.hinting) {
		return d
	}
	out := *d
	out.hinting = s
	return &out
}

// messageCounts gathers a diagnosis's counts, by message.
type messageCounts map[string]*Count

// add counts a message of a plugin for one more node.
func (m messageCounts) add(message, plugin string) *Count {
	c := m[message]
	if c == nil {
		c = &Count{Message: message, Plugin: plugin}
		m[message] = c
	}
	c.Nodes++
	return c
}

// mostFrequent returns the counts of the n messages of the most nodes, and one more for the nodes of
// all others, if there are any.
func (m messageCounts) mostFrequent(n int, plugin string) []Count {
	list := make([]Count, 0, len(m))
	for _, c := range m {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Message, b.Message))
	})
	if len(list) <= n {
		return list
	}
	others := Count{Message: fmt.Sprintf("node(s) were rejected for %d other reason(s)", len(list)-n), Plugin: plugin}
	for _, c := range list[n:] {
		others.Nodes += c.Nodes
	}
	return append(list[:n:n], others)
}

// countsOf returns the counts of nodes that are rejected for these reasons, in the memory of out.
func countsOf(out []Count, list []rejected) []Count {
	out = out[:0]
	for _, r := range list {
		if r.nodes == 0 {
			continue
		}
		for _, m := range r.why.Messages {
			if k := slices.IndexFunc(out, func(c Count) bool { return c.Message == m }); k >= 0 {
				out[k].Nodes += r.nodes
			} else {
				out = append(out, Count{Message: m, Nodes: r.nodes, Plugin: r.why.Plugin})
			}
		}
	}
	sortCounts(out)
	return out
}

// sorted returns the counts in the order in which messages have them.
func (m messageCounts) sorted() []Count {
	out := make([]Count, 0, len(m))
	for _, c := range m {
		out = append(out, *c)
	}
	sortCounts(out)
	return out
}

// sortCounts puts counts into the order of the texts "N message", as kube-scheduler sorts
// them: numbers as texts, so that 10 comes before 9.
func sortCounts(list []Count) {
	slices.SortFunc(list, func(a, b Count) int {
		if a.Nodes != b.Nodes {
			var x, y [20]byte
			return bytes.Compare(strconv.AppendInt(x[:0], int64(a.Nodes), 10), strconv.AppendInt(y[:0], int64(b.Nodes), 10))
		}
		return strings.Compare(a.Message, b.Message)
	})
}
