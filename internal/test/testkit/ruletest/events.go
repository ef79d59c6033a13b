package ruletest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file tests what a plugin says about changes: of a pod (signatures), and of the cluster
// (which pods to reclassify, which changes may help).

// Part says which parts of the signature tell two pods apart.
type Part string

// The parts of a signature (framework.Plugin.Sign).
const (
	Same  Part = "neither part"
	Local Part = "the local part"
	Group Part = "the group part"
	Both  Part = "both parts"
)

// Signatures is a test of what a plugin signs: a pod, and changes of it. A change that the signature
// misses would put pods into one class that the plugin's rules tell apart; one that it has for nothing
// only costs classes.
type Signatures struct {
	Version compat.Version // 0 for the newest
	Plugin  Make
	Nodes   Nodes
	Objects Objects
	Pods    Pods
	Pod     func() *testkit.PodBuilder
	Cases   []Change
}

// Change is a change of the pod, and which part of the signature it changes.
type Change struct {
	name  string
	do    func(*testkit.PodBuilder)
	tells Part
}

// Differs returns a Change.
func Differs(name string, do func(*testkit.PodBuilder), by Part) Change { return Change{name, do, by} }

// Run checks which parts of the signature each change changes.
func (x Signatures) Run(t *testing.T) {
	t.Helper()
	for _, s := range x.Cases {
		t.Run(s.name, func(t *testing.T) {
			t.Helper()
			world := NewClusterFor(t, x.Version, x.Nodes, x.Objects, x.Pods)
			plugin := x.Plugin(world.Schema)
			changed := x.Pod()
			s.do(changed)
			a, b := sign(world, plugin, world.Parse(x.Pod())), sign(world, plugin, world.Parse(changed))
			if got := a.differs(b); got != s.tells {
				t.Errorf("%s tells the pods apart, want %s", got, s.tells)
			}
		})
	}
}

// signature is what a plugin signs of one pod, in the bytes that the engine compares.
type signature struct{ local, group []byte }

func sign(world *Cluster, plugin framework.Plugin, pod *cluster.Pod) signature {
	var local, group framework.Signature
	plugin.Sign(pod, world.State, &local, &group)
	return signature{bytes.Clone(local.Bytes()), bytes.Clone(group.Bytes())}
}

// differs returns which parts tell two pods apart.
func (a signature) differs(b signature) Part {
	switch local, group := !bytes.Equal(a.local, b.local), !bytes.Equal(a.group, b.group); {
	case local && group:
		return Both
	case local:
		return Local
	case group:
		return Group
	}
	return Same
}

// SignsAgain reports whether a change of the cluster changes the signature of a pod.
func SignsAgain(t testing.TB, make Make, nodes Nodes, objects Objects, pods Pods, pod *testkit.PodBuilder, change func(*Cluster)) bool {
	t.Helper()
	world := NewCluster(t, nodes, objects, pods)
	plugin := make(world.Schema)
	before := sign(world, plugin, world.Parse(pod))
	world.Changes(change)
	return before.differs(sign(world, plugin, world.Parse(pod))) != Same
}

// Reclassifies is a test of which pods a plugin wants reclassified when the cluster changes
// (framework.Reclassifier).
type Reclassifies struct {
	Plugin  Make
	Nodes   Nodes
	Objects Objects
	Pods    Pods
	Waiting Pods // the pods that may have to be reclassified
	Cases   []Event[string]
}

// Event is a change of the cluster, and what the plugin is to say about it.
type Event[T any] struct {
	name string
	do   func(*Cluster)
	want T
}

// Reclassified returns a change after which the waiting pods of these names, separated by
// spaces, are to be reclassified.
func Reclassified(name string, do func(*Cluster), pods string) Event[string] {
	return Event[string]{name, do, pods}
}

// Hint returns a change that may help, or can't.
func Hint(name string, do func(*Cluster), mayHelp bool) Event[bool] {
	return Event[bool]{name, do, mayHelp}
}

// Run checks which pods are reclassified: those that the case names, and every pod whose
// signature has changed.
func (x Reclassifies) Run(t *testing.T) {
	t.Helper()
	for _, r := range x.Cases {
		t.Run(r.name, func(t *testing.T) {
			t.Helper()
			world := NewCluster(t, x.Nodes, x.Objects, x.Pods)
			plugin := x.Plugin(world.Schema)
			before := make([]signature, len(x.Waiting))
			for i, b := range x.Waiting {
				before[i] = sign(world, plugin, world.Parse(b))
			}
			changes := world.Changes(r.do)
			var got []string
			for i, b := range x.Waiting {
				pod := world.Parse(b)
				again := slices.ContainsFunc(changes, func(c cluster.Change) bool {
					again := plugin.(framework.Reclassifier).Reclassifies(&c, world.State)
					return again != nil && again(pod)
				})
				if again {
					got = append(got, b.Name)
				} else if part := before[i].differs(sign(world, plugin, pod)); part != Same {
					t.Errorf("%s of the signature of pod %s has changed, and it isn't reclassified", part, b.Name)
				}
			}
			if text := strings.Join(got, " "); text != r.want {
				t.Errorf("reclassified: %q, want %q", text, r.want)
			}
		})
	}
}

// Hints is a test of which changes of the cluster may turn the group rule's "no" into a "yes"
// on other nodes than the touched one (framework.Hinter).
type Hints struct {
	Case
	Cases []Event[bool]
}

// Run checks the hints.
func (x Hints) Run(t *testing.T) {
	t.Helper()
	for _, h := range x.Cases {
		t.Run(h.name, func(t *testing.T) {
			t.Helper()
			world, plugin := x.build(t)
			a, all := x.prepare(world, plugin)
			if all != nil {
				t.Fatalf("the plugin has no rules for the pod: %v", all)
			}
			hinter, ok := a.rules.Group.(framework.Hinter)
			if !ok {
				t.Fatal("the group rule gives no hints")
			}
			got := false
			var by []string
			for _, c := range world.Changes(h.do) {
				if hinter.Hint(&c) {
					got = true
					by = append(by, fmt.Sprint("operation ", c.Op))
				}
			}
			if got != h.want {
				t.Errorf("may help: %v %v, want %v", got, by, h.want)
			}
		})
	}
}
