package door

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
)

// Input is an input that was admitted.
// Only this package can make one, so that nothing passes by the door.
type Input struct{ of step.Input }

// Unwrap returns what was admitted, as the core reads it.
func (in Input) Unwrap() step.Input { return in.of }

// missing is what is wrong with an input that isn't about any object.
const missing = "the object is missing; the input is ignored"

// Admit returns an input within the bounds, and reports what is beyond them. ok is false when
// nothing is left of it that the core could take. What in refers to isn't changed: what has to be
// bounded is copied. It takes O(size of the input), some 0.2 µs for a pod.
// report may be called several times for one input, and is called before it returns.
func Admit(in step.Input, report func(Problem)) (out Input, ok bool) {
	a := admission{report: report, ok: true}
	out.of = a.admit(in)
	return out, a.ok
}

// Must returns inputs that have nothing beyond the bounds. It panics about others: it is for
// inputs that the program makes itself.
// A panic here is a mistake in the program, never in its input.
func Must(inputs ...step.Input) []Input {
	out := make([]Input, 0, len(inputs))
	for _, in := range inputs {
		admitted, _ := Admit(in, func(p Problem) { panic(p) })
		out = append(out, admitted)
	}
	return out
}

// admission is one call of Admit.
// ok is false once anything has been refused.
type admission struct {
	report func(Problem)
	ok     bool
}

// refuse reports why nothing is left of the input.
func (a *admission) refuse(object, what string) {
	a.ok = false
	a.report(Problem{object, what, true})
}

// beyond says what is too large, and what becomes of it.
func beyond(field string, size int, unit string, bound int, outcome string) string {
	return fmt.Sprintf("%s has %d %s, at most %d are accepted; %s", field, size, unit, bound, outcome)
}

// admit bounds an input by its kind. What has no field that the outside chooses is passed
// on.
//
// What is returned unchanged is the input itself: a changed copy of it would be allocated.
func (a *admission) admit(in step.Input) step.Input {
	switch x := in.(type) {
	case step.PodSet:
		if admitted := admitObject(a, "pod", x.Pod, x.Pod == nil); admitted != x.Pod {
			x.Pod = admitted
			return x
		}
		return in
	case step.NodeSet:
		admitted := admitObject(a, "node", x.Node, x.Node == nil)
		if admitted == x.Node && len(x.Group) <= MaxID {
			return in
		}
		x.Node = admitted
		if a.ok && len(x.Group) > MaxID { // as of any node of a group that was left out
			a.report(Problem{"node " + x.Node.GetName(), beyond("the ID of its node group", len(x.Group), "bytes", MaxID, "it counts as a node of no group"), false})
			x.Group = ""
		}
		return x
	case step.DaemonSetSet:
		if admitted := admitObject(a, "DaemonSet", x.DaemonSet, x.DaemonSet == nil); admitted != x.DaemonSet {
			x.DaemonSet = admitted
			return x
		}
		return in
	case step.ObjectSet:
		admitted := admitObject(a, "object", x.Object, x.Object == nil)
		if a.ok {
			// Slices, claims and classes have lists and expressions of their own to be
			// bounded.
			a.devices(admitted)
		}
		if admitted == x.Object {
			return in
		}
		x.Object = admitted
		return x
	case step.WorkloadSet:
		if x.Workload == nil {
			a.refuse("workload", missing)
			return x
		}
		a.name(string(x.Workload.Kind), x.Workload.Namespace, x.Workload.Name, "")
		return x
	case step.GroupsSet:
		return a.groups(x)
	case step.Consulted:
		return consulted(x)
	}
	return outcome(in)
}

// admitObject returns an object of the API whose amounts are bounded. One that isn't there, and
// one with a name that no API server has accepted, is refused.
func admitObject[O metav1.Object](a *admission, kind string, o O, isNil bool) O {
	if isNil {
		a.refuse(kind, missing)
		return o
	}
	a.name(kind, o.GetNamespace(), o.GetName(), string(o.GetUID()))
	// Nearly all objects are within the bounds, and aren't copied.
	if within(o) {
		return o
	}
	// Caches share the object with others.
	bounded := any(o).(runtime.Object).DeepCopyObject()
	Object(bounded)
	return bounded.(O)
}

// name refuses names longer than the API allows. The report shortens them: it goes to a
// log.
func (a *admission) name(kind, namespace, name, uid string) {
	for _, x := range []struct{ field, text string }{{"its namespace", namespace}, {"its name", name}, {"its UID", uid}} {
		if len(x.text) > MaxName {
			a.refuse(kind+" "+Shorten(namespace+"/"+name), beyond(x.field, len(x.text), "bytes", MaxName, "it is ignored"))
			return
		}
	}
}

// groups bounds what a provider lists. A list of too many groups is refused as a whole, since a
// group that isn't listed counts as gone; of a group that lists too much, or is listed twice and
// differently, nothing is said.
func (a *admission) groups(in step.GroupsSet) step.GroupsSet {
	if len(in.Groups) > MaxGroups {
		a.refuse("the provider", beyond("its list of node groups", len(in.Groups), "groups", MaxGroups, "the last known state is used"))
		return in
	}
	if in.Groups == nil {
		return in
	}
	listed, unsaid := make([]nodegroup.Group, 0, len(in.Groups)), map[string]bool{}
	at := make(map[string]int, len(in.Groups)) // in listed, by ID
	for i := range in.Groups {
		g, said := a.group(in.Groups[i])
		first, twice := at[g.ID]
		switch {
		case len(g.ID) > MaxID || unsaid[g.ID]:
		case !said:
			unsaid[g.ID] = true
		case !twice:
			at[g.ID] = len(listed)
			listed = append(listed, g)
		case reflect.DeepEqual(listed[first], g):
			a.reportGroup(&g, "it is listed twice, which counts as once")
		default:
			a.reportGroup(&g, "it is listed twice, and differently; its last known state is used")
			unsaid[g.ID] = true
		}
	}
	if len(unsaid) > 0 {
		// Groups that are busy keep their last state in the core.
		in.Busy = slices.Concat(in.Busy, slices.Collect(maps.Keys(unsaid)))
		slices.Sort(in.Busy)
	}
	for _, id := range in.Busy {
		unsaid[id] = true
	}
	in.Groups = slices.DeleteFunc(listed, func(g nodegroup.Group) bool { return unsaid[g.ID] })
	return in
}

// group returns a group within the bounds; said is false if nothing can be said of it.
func (a *admission) group(g nodegroup.Group) (_ nodegroup.Group, said bool) {
	if len(g.ID) > MaxID {
		a.reportGroup(&g, beyond("its ID", len(g.ID), "bytes", MaxID, "it is ignored"))
		return g, false
	}
	if len(g.Instances) > MaxInstances {
		a.reportGroup(&g, beyond("its list of instances", len(g.Instances), "instances", MaxInstances, "its last known state is used"))
		return g, false
	}
	// Texts are for people.
	g.TemplateError, g.Unreadable = Shorten(g.TemplateError), Shorten(g.Unreadable)
	if g.Template != nil {
		if field, most := largest(&g); most > MaxEntries {
			why := beyond(field, most, "entries", MaxEntries, "the group can't grow")
			a.reportGroup(&g, why)
			g.Template, g.TemplateError = nil, why
		} else if !within(g.Template) {
			g.Template = g.Template.DeepCopy()
			Object(g.Template)
		}
	}
	return a.instances(g)
}

// instances bounds the instances that a group lists. A list within the bounds stays the same slice:
// by that the core knows that nothing has changed.
func (a *admission) instances(g nodegroup.Group) (_ nodegroup.Group, said bool) {
	copied := false
	for i := range g.Instances {
		x := &g.Instances[i]
		if size := max(len(x.ID), len(x.Node)); size > MaxID {
			a.reportGroup(&g, beyond("the ID or the node of an instance", size, "bytes", MaxID, "its last known state is used"))
			return g, false
		}
		if len(x.Failed) <= MaxText && len(x.Code) <= MaxText {
			continue
		}
		if !copied {
			g.Instances, copied = slices.Clone(g.Instances), true
			x = &g.Instances[i]
		}
		x.Failed, x.Code = Shorten(x.Failed), Shorten(x.Code)
	}
	return g, true
}

// reportGroup reports what is beyond the bounds in a group, and what becomes of it.
func (a *admission) reportGroup(g *nodegroup.Group, what string) {
	a.report(Problem{"node group " + Shorten(g.ID), what, false})
}

// largest returns the part of a group's template that has the most entries.
func largest(g *nodegroup.Group) (field string, entries int) {
	t := g.Template
	for _, x := range []struct {
		field   string
		entries int
	}{
		{"the labels of its template", len(t.Labels)}, {"the annotations of its template", len(t.Annotations)},
		{"the taints of its template", len(t.Spec.Taints)}, {"the images of its template", len(t.Status.Images)},
		{"the allocatable resources of its template", len(t.Status.Allocatable)}, {"the capacity of its template", len(t.Status.Capacity)},
	} {
		if x.entries > entries {
			field, entries = x.field, x.entries
		}
	}
	return field, entries
}
