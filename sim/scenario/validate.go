package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berthproject/berth/internal/simulateddevices"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file checks the fields of scenarios and policies. What must hold: everything that
// is wrong is reported at once, each with its line, the value, and what would be accepted.

// scenario checks a scenario, but for its policy.
// The checks don't depend on each other, so that one mistake doesn't hide the next. Fields
// of unknown names were refused when the file was decoded.
func (v *validator) scenario(s *Scenario) {
	if s.APIVersion != APIVersion {
		v.bad("apiVersion", "is %q; it must be %q", s.APIVersion, APIVersion)
	}
	if s.Kind != Kind {
		v.bad("kind", "is %q; it must be %q", s.Kind, Kind)
	}
	sp := &s.Spec
	v.groups(sp)
	v.nodes(sp)
	v.deviceClasses(sp)
	v.traces(sp)
	v.workloads(sp)
	v.images(sp)
	v.behaviour(sp)
	for i := range sp.Faults {
		v.fault(&sp.Faults[i], fmt.Sprintf("spec.faults[%d]", i), sp)
	}
	v.expectations(sp)
	v.duration("spec.end.at", sp.End.At.Duration)
	v.duration("spec.end.quiet", sp.End.Quiet.Duration)
}

// policyFile checks the head of a policy's file.
func (v *validator) policyFile(p *PolicyFile) {
	if p.APIVersion != APIVersion {
		v.bad("apiVersion", "is %q; it must be %q", p.APIVersion, APIVersion)
	}
}

// maxMistakes is how many mistakes of a file are reported one by one. To find the line of one may
// cost a walk over the file.
const maxMistakes = 100

// validator collects what is wrong with the fields of a file.
type validator struct {
	src   source
	wrong []mistake // maxMistakes of them at most
	more  int       // how many were found after these
}

// mistake is what is wrong with a field.
// Its line is kept apart from the text, to sort by.
type mistake struct {
	line int
	error
}

// err returns all that is wrong in the order of lines, joined; nil for nothing.
func (v *validator) err() error {
	// Checks run by subject, not from top to bottom; people read from top to bottom.
	slices.SortStableFunc(v.wrong, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, m := range v.wrong {
		errs = append(errs, m.error)
	}
	if v.more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more mistakes", v.src.path, v.more))
	}
	return errors.Join(errs...)
}

// bad reports what is wrong with a field; the message says what would be accepted.
// The field is a path such as spec.nodes[2].count, by which its line is found.
func (v *validator) bad(field, format string, args ...any) {
	v.badLine(func() int { return v.src.line(field) }, field, format, args...)
}

// badAt is bad of a field whose node is at hand.
func (v *validator) badAt(n ast.Node, field, format string, args ...any) {
	v.badLine(func() int { return n.GetToken().Position.Line }, field, format, args...)
}

// badLine finds the line only for mistakes that are reported: of a file with a million
// entries that are all wrong, the rest is only counted.
func (v *validator) badLine(line func() int, field, format string, args ...any) {
	if len(v.wrong) == maxMistakes {
		v.more++
		return
	}
	n := line()
	v.wrong = append(v.wrong, mistake{n, v.src.errorAt(n, field, format, args...)})
}

// notNegative refuses numbers below 0 and, since YAML has .nan and .inf, what is no number.
func (v *validator) notNegative(field string, n float64) {
	switch {
	case n < 0:
		v.bad(field, "is %v; it must not be negative", n)
	case math.IsNaN(n) || math.IsInf(n, 1):
		v.bad(field, "is %v; it must be a number", n)
	}
}

// fraction checks that n, which stands for what, is from 0 to 1.
func (v *validator) fraction(field, what string, n float64) {
	// Written so that NaN, which is neither below 0 nor above 1, is refused as well.
	if !(n >= 0 && n <= 1) { // nor is it NaN
		v.bad(field, "is %v; %s from 0 to 1", n, what)
	}
}

// duration refuses times below 0; most fields mean a time since the start, where there is
// nothing before 0.
func (v *validator) duration(field string, d time.Duration) {
	if d < 0 {
		v.bad(field, "is %s; a time must not be negative", d)
	}
}

// span refuses a range that is empty or begins below 0; nil is in order.
func (v *validator) span(field string, s *simulatedgroup.Span) {
	if s != nil && (s.Min.Duration < 0 || s.Max.Duration < s.Min.Duration) {
		v.bad(field, "is %s to %s; it must be a range from a minimum of at least 0 to a maximum that is not less", s.Min.Duration, s.Max.Duration)
	}
}

// quantity refuses a quantity below 0; nil is in order.
func (v *validator) quantity(field string, q *resource.Quantity) {
	if q != nil && q.Sign() < 0 {
		v.bad(field, "is %s; it must not be negative", q)
	}
}

// positive refuses a quantity of 0 as well: for rates, by which bytes are divided.
func (v *validator) positive(field string, q *resource.Quantity) {
	if q != nil && q.Sign() <= 0 {
		v.bad(field, "is %s; it must be greater than 0", q)
	}
}

// name checks that a name can be one of an API object.
func (v *validator) name(field, name string) {
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		v.bad(field, "%q is not a valid name: %s", name, why[0])
	}
}

// allocatable checks that a node has CPU, memory and room for pods.
func (v *validator) allocatable(field string, list v1.ResourceList) {
	// A pod takes all three on every node: with one of them missing the group would be
	// bought in vain.
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods} {
		q, ok := list[name]
		if !ok || q.Sign() <= 0 {
			v.bad(field, "%s is %q; it must be a positive quantity, or no pod would ever fit", name, q.String())
		}
	}
	// Extended resources may be 0, as on a node whose device plugin hasn't registered.
	for name, q := range list {
		if q.Sign() < 0 {
			v.bad(field, "%s is %s; it must not be negative", name, q.String())
		}
	}
}

// groups checks node groups: their names, sizes, speeds and the template of a node.
func (v *validator) groups(sp *Spec) {
	seen := map[string]bool{}
	for i := range sp.NodeGroups {
		g, at := &sp.NodeGroups[i], fmt.Sprintf("spec.nodeGroups[%d]", i)
		v.name(at+".name", g.Name)
		if seen[g.Name] {
			v.bad(at+".name", "%q is given twice; names must be unique", g.Name)
		}
		// Names are what faults, decisions and nodes' names refer to.
		seen[g.Name] = true
		if g.Min < 0 {
			v.bad(at+".min", "is %d; it must not be negative", g.Min)
		}
		if g.Max < g.Min {
			v.bad(at+".max", "is %d, less than min %d", g.Max, g.Min)
		}
		if g.Initial < 0 || g.Initial > g.Max {
			v.bad(at+".initial", "is %d; it must be from 0 to max %d", g.Initial, g.Max)
		}
		v.span(at+".launchDelay", &g.LaunchDelay)
		v.span(at+".startup", &g.Startup)
		v.fraction(at+".failureRate", "it must be", g.FailureRate)
		v.notNegative(at+".launchesPerSecond", g.LaunchesPerSecond)
		v.notNegative(at+".pricePerHour", g.PricePerHour)
		v.quantity(at+".boot.bytes", g.Boot.Bytes)
		v.positive(at+".boot.rate", g.Boot.Rate)
		v.positive(at+".diskRate", g.DiskRate)
		if g.Stock != nil {
			v.notNegative(at+".stock", float64(*g.Stock))
		}
		v.span(at+".devicesAfter", g.DevicesAfter)
		simulateddevices.Validate(g.Devices, at+".devices", v.bad)
		v.allocatable(at+".template.allocatable", g.Template.Allocatable)
	}
}

// maxCount is how many pods or nodes one entry of a scenario may make: a world holds each of
// them in memory.
const maxCount = 10_000_000

// count refuses more copies of so many objects than a world can hold.
// Each factor is checked before the product, which could otherwise overflow.
func (v *validator) count(at string, n, copies int) {
	if n > maxCount || copies > maxCount || n*copies > maxCount {
		v.bad(at, "is %d, in %d copies; the product must be at most %d", n, copies, maxCount)
	}
}

// nodes checks the nodes that are there at the start. With a count the name is a prefix, to
// which a number is added.
func (v *validator) nodes(sp *Spec) {
	for i := range sp.Nodes {
		n, at := &sp.Nodes[i], fmt.Sprintf("spec.nodes[%d]", i)
		v.name(at+".name", n.Name)
		v.notNegative(at+".count", float64(n.Count))
		v.count(at+".count", n.Count, 1)
		v.allocatable(at+".template.allocatable", n.Template.Allocatable)
		simulateddevices.Validate(n.Devices, at+".devices", v.bad)
	}
}

// traces checks what is said of a trace; its files are checked when they are read.
func (v *validator) traces(sp *Spec) {
	for i := range sp.Traces {
		t, at := &sp.Traces[i], fmt.Sprintf("spec.traces[%d]", i)
		if t.Format != "openb" {
			v.bad(at+".format", "is %q; it must be openb", t.Format)
		}
		v.notNegative(at+".limit", float64(t.Limit))
		v.notNegative(at+".speed", t.Speed)
	}
}

// workloads checks each workload, and that names differ within a namespace.
func (v *validator) workloads(sp *Spec) {
	for i := range sp.Workload {
		v.workload(&sp.Workload[i], fmt.Sprintf("spec.workload[%d]", i))
	}
	names := map[string]bool{}
	for i := range sp.Workload {
		w := &sp.Workload[i]
		key := w.Namespace + "/" + w.Name
		if names[key] {
			v.bad(fmt.Sprintf("spec.workload[%d].name", i), "%q is given twice; names must be unique", w.Name)
		}
		names[key] = true
	}
}

// images checks image names and the sizes of layers. An image that no pod uses is no
// mistake: files are shared between scenarios.
func (v *validator) images(sp *Spec) {
	for i := range sp.Images {
		at := fmt.Sprintf("spec.images[%d]", i)
		if sp.Images[i].Name == "" {
			v.bad(at+".name", "is empty; it must be the name that containers use")
		}
		for k := range sp.Images[i].Layers {
			v.quantity(fmt.Sprintf("%s.layers[%d].bytes", at, k), &sp.Images[i].Layers[k].Bytes)
		}
	}
}

// behaviour checks how the API server, kubelets, the storage and the registry behave.
func (v *validator) behaviour(sp *Spec) {
	v.span("spec.api.callLatency", sp.API.CallLatency)
	v.span("spec.api.watchLatency", sp.API.WatchLatency)
	v.span("spec.api.cloudLatency", sp.API.CloudLatency)
	v.duration("spec.api.planLatency", sp.API.PlanLatency.Duration)
	v.notNegative("spec.api.bindsPerSecond", sp.API.BindsPerSecond)
	v.span("spec.kubelet.start", sp.Kubelet.Start)
	v.span("spec.kubelet.stop", sp.Kubelet.Stop)
	v.positive("spec.storage.sharedRate", sp.Storage.SharedRate)
	v.notNegative("spec.storage.pullStreams", sp.Storage.PullStreams)
	v.notNegative("spec.storage.knee", sp.Storage.Knee)
	v.notNegative("spec.storage.collapse", sp.Storage.Collapse)
	v.positive("spec.registry.connectionRate", sp.Registry.ConnectionRate)
}

// expectations checks that each names a metric of the summary and at least one bound.
func (v *validator) expectations(sp *Spec) {
	for i := range sp.Expect {
		e, at := &sp.Expect[i], fmt.Sprintf("spec.expect[%d]", i)
		if !slices.Contains(Metrics(), e.Metric) {
			v.bad(at+".metric", "%q is not a metric; they are %s", e.Metric, strings.Join(Metrics(), ", "))
		}
		if e.Is == nil && e.Min == nil && e.Max == nil {
			v.bad(at, "has no expectation; set is, min or max")
		}
	}
}

// workload checks one workload; at is its field.
func (v *validator) workload(w *Workload, at string) {
	v.name(at+".name", w.Name)
	switch w.Kind {
	case "", "Pod", "Job", "ReplicaSet", "StatefulSet":
		if w.Count < 1 {
			v.bad(at+".count", "is %d; a workload needs at least 1 pod", w.Count)
		}
	// It makes a pod for each node, so it needs no count.
	case "DaemonSet":
	default:
		v.bad(at+".kind", "is %q; it must be Pod, Job, ReplicaSet, StatefulSet or DaemonSet", w.Kind)
	}
	v.count(at+".count", w.Count, max(1, w.Copies))
	v.notNegative(at+".copies", float64(w.Copies))
	v.notNegative(at+".parallelism", float64(w.Parallelism))
	v.duration(at+".arrive.after", w.Arrive.After.Duration)
	v.duration(at+".arrive.over", w.Arrive.Over.Duration)
	v.duration(at+".deleteAfter", w.DeleteAfter.Duration)
	if p := w.Arrive.Pattern; p != "" && p != "even" && p != "poisson" {
		v.bad(at+".arrive.pattern", "is %q; it must be even or poisson", p)
	}
	v.span(at+".runFor", w.RunFor)
	if w.Resize != nil {
		v.resize(w.Resize, at+".resize")
	}
	v.claims(w, at)
	v.podGroup(w, at+".podGroup")
	if len(w.Template.Spec.Containers) == 0 {
		v.bad(at+".template", "has no containers; it needs at least one")
	}
	// Only what the simulator itself would stumble over is checked of a pod. The door
	// checks the rest as it does for pods from an API server.
	for i := range w.Template.Spec.Containers {
		for name, q := range w.Template.Spec.Containers[i].Resources.Requests {
			if q.Sign() < 0 {
				v.bad(fmt.Sprintf("%s.template.spec.containers[%d].resources.requests", at, i), "%s is %s; it must not be negative", name, q.String())
			}
		}
	}
}

// resize checks what pods are resized to: kubelets resize CPU and memory only.
func (v *validator) resize(r *Resize, at string) {
	v.span(at+".after", &r.After)
	if len(r.Requests) == 0 {
		v.bad(at+".requests", "is empty; it needs cpu or memory")
	}
	for name, q := range r.Requests {
		switch {
		case name != v1.ResourceCPU && name != v1.ResourceMemory:
			v.bad(at+".requests", "has %s; only cpu and memory can be resized", name)
		case q.Sign() <= 0:
			v.bad(at+".requests", "%s is %s; it must be greater than 0", name, q.String())
		}
	}
}

// maxPerHour is how often an event may come: a world in which some come at every moment doesn't
// move on.
const maxPerHour = 3600

// fault checks one fault; at is its field.
// A kind says which fields it needs (faultKinds), so that a field without effect is
// reported instead of ignored.
func (v *validator) fault(f *Fault, at string, sp *Spec) {
	kind, ok := faultKinds[f.Kind]
	if !ok {
		v.bad(at+".kind", "is %q; it must be one of %s", f.Kind, strings.Join(FaultKinds(), ", "))
		return
	}
	v.duration(at+".from", f.From.Duration)
	v.duration(at+".for", f.For.Duration)
	// An until of zero means until the end of the run.
	if f.Until.Duration != 0 && f.Until.Duration <= f.From.Duration {
		v.bad(at+".until", "is %s, not after from (%s)", f.Until.Duration, f.From.Duration)
	}
	v.fraction(at+".rate", "a probability is", f.Rate)
	v.notNegative(at+".perHour", f.PerHour)
	if f.PerHour > maxPerHour {
		v.bad(at+".perHour", "is %v; it must be at most %d, which is one per second", f.PerHour, maxPerHour)
	}
	switch {
	case kind.rate && f.Rate == 0:
		v.bad(at, "has no rate; %s needs one greater than 0", f.Kind)
	case kind.event && f.PerHour == 0 && len(f.At) == 0:
		v.bad(at, "has neither perHour nor at; %s needs one", f.Kind)
	}
	for i, d := range f.At {
		v.duration(fmt.Sprintf("%s.at[%d]", at, i), d.Duration)
	}
	if f.Group != "" && !slices.ContainsFunc(sp.NodeGroups, func(g NodeGroup) bool { return g.Name == f.Group }) {
		v.bad(at+".group", "%q is not a node group of the scenario", f.Group)
	}
	if f.Group != "" && kind.ungrouped {
		v.bad(at+".group", "is %q; %s does not apply to a node group: remove it", f.Group, f.Kind)
	}
}

// FaultKinds returns the kinds of faults by name.
func FaultKinds() []string {
	return slices.Sorted(maps.Keys(faultKinds))
}
