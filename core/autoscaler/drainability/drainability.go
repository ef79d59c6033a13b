// Package drainability decides whether a pod may be evicted so that its node can be
// removed. The rules are Cluster Autoscaler's (pkg/simulator/drainability/rules there), of
// the same names and in the same order; beside them, Karpenter's karpenter.sh/do-not-disrupt
// is honoured, and members of pod groups stay whose replacements would not be placed.
//
// Whether a disruption budget allows the eviction is no rule here: what a budget has left
// depends on the pods that were given up before, which the caller counts.
package drainability

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// Outcome says what has to become of a pod before its node can be removed.
type Outcome uint8

// The outcomes.
const (
	// Evict: the pod has to be evicted, and its replacement needs a node.
	Evict Outcome = iota
	// Ignore: nothing. The pod goes with its node, or is gone already.
	Ignore
	// WaitFor: the pod has to end by itself.
	WaitFor
	// Block: the pod keeps its node.
	Block
)

// Verdict is what the first rule that has something to say about a pod says.
type Verdict struct {
	Outcome Outcome
	// Rule is the rule's name, "" when none has anything to say: then the pod is evicted.
	Rule string
	// Why is for people, in words that follow the pod's name. It is empty unless the outcome
	// is WaitFor or Block.
	Why string
}

// Context is what rules know beside the pod. It is good for one pass.
type Context struct {
	Rules *autoscaler.RemovalRules
	State *cluster.State
	Now   time.Time // the API server's
	// Alone says that the other members of a pod group are not waited for: the cloud takes the pod's node,
	// or the pod alone moves.
	Alone bool
	// Until is the first of the times after which a verdict that was given may be another
	// though nothing has changed; zero for none.
	Until time.Time
}

// holdsUntil records that a verdict may be another after a time; zero for never.
func (c *Context) holdsUntil(at time.Time) {
	if !at.IsZero() && (c.Until.IsZero() || at.Before(c.Until)) {
		c.Until = at
	}
}

// rule is one of the rules. Its judge returns ok when the rule has something to say about the
// pod: then later rules aren't asked.
type rule struct {
	name  string
	judge func(*Context, *cluster.Pod) (o Outcome, why string, ok bool)
}

// rules are all rules, in the order in which they are asked.
var rules = [...]rule{
	{"Mirror", mirror},
	{"LongTerminating", longTerminating},
	{"ReplicaCount", replicaCount},
	{"DoNotDisrupt", doNotDisrupt},
	{"DaemonSet", daemonSet},
	{"SafeToEvict", safeToEvict},
	{"Terminal", terminal},
	{"OnCompletion", onCompletion},
	{"PodGroup", podGroup},
	{"Replicated", replicated},
	{"System", system},
	{"NotSafeToEvict", notSafeToEvict},
	{"LocalStorage", localStorage},
}

// Judge returns what must happen to a pod that is on a node. It is asked for every pod of
// every candidate: it allocates nothing unless the pod keeps its node.
func (c *Context) Judge(p *cluster.Pod) Verdict {
	for i := range rules {
		if o, why, ok := rules[i].judge(c, p); ok {
			return Verdict{Outcome: o, Rule: rules[i].name, Why: why}
		}
	}
	return Verdict{Outcome: Evict}
}
