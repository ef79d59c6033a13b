// Package soak plays random worlds with random faults and looks for broken
// invariants. A world that breaks one is made smaller as long as it still
// does, and written as a scenario that shows it.
//
//	generate.go  draws a world from a seed
//	draining.go  draws a world in which nodes are drained
//	devices.go   draws a world in which pods claim devices
//	gangs.go     draws a world in which nodes are bought for pod groups
//	podgroups.go draws a world with pod groups
//	gangroom.go  draws a world in which room is kept for gangs that others overtake
//	odd.go       adds what is odd to some worlds of both kinds
//	soak.go      plays a world and collects what it breaks
//	shrink.go    makes a world that breaks something smaller
//
// What must hold of worlds:
//   - a world is a function of its seed: a seed that is printed by a failed test repeats it;
//   - a world comes to rest. Faults end, pods end or can stay, timers are short, so that whatever is
//     still pending or half done at the end is a defect and not a matter of time;
//   - a world is a scenario as a person could write it. What is found is therefore a file for
//     berth simulate --check, and one in testdata/ is a test for good.
package soak

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/scenario"
)

// This file draws worlds. The draws are in sequence, so that a change of their order or
// number makes other worlds of all seeds: what hack/digests/digests.txt has of them, and
// the seeds that people have noted, would mean nothing any more.

// dice draws from a seed. Each world has its own, so that worlds can be drawn at the same time.
type dice struct{ *rand.Rand }

// maybe is true in so many cases of a hundred.
func (d dice) maybe(percent int) bool { return d.IntN(100) < percent }

// from draws a number between two, both included.
func (d dice) from(low, high int) int { return low + d.IntN(high-low+1) }

// dur draws a duration in whole seconds.
func (d dice) dur(low, high time.Duration) metav1.Duration {
	return metav1.Duration{Duration: (low + time.Duration(d.Int64N(int64(high-low)+1))).Round(time.Second)}
}

// span draws a minimum and a maximum between two durations. The maximum is drawn above the minimum,
// so that it never lies below it.
func (d dice) span(low, high time.Duration) simulatedgroup.Span {
	a := d.dur(low, high)
	return simulatedgroup.Span{Min: a, Max: d.dur(a.Duration, high)}
}

// one draws one of several values.
func one[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// zones are few, so that pods that are spread over them or bound to one often collide.
var zones = []string{"a", "b", "c"}

// Generate draws a world. Faults end, workloads end or fit, and the timers are
// short, so that the world comes to rest: after 25 quiet minutes, of at most 12 hours of virtual
// time. Whatever was added to the draws later stands at the end, for the reason given above.
func Generate(seed uint64) *scenario.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 0x736f616b))}
	s := &scenario.Scenario{APIVersion: scenario.APIVersion, Kind: scenario.Kind, Metadata: scenario.Metadata{Name: fmt.Sprintf("soak-%d", seed)}}
	sp := &s.Spec
	sp.Seed = seed
	for i := range d.from(1, 3) {
		sp.NodeGroups = append(sp.NodeGroups, d.group(i))
	}
	if d.maybe(40) {
		sp.Nodes = append(sp.Nodes, scenario.Nodes{Name: "fixed", Count: d.from(1, 4), Zones: zones[:d.from(1, 3)], Template: d.template()})
	}
	for i := range d.from(1, 5) {
		sp.Workload = append(sp.Workload, d.workload(i))
	}
	for range d.IntN(6) {
		sp.Faults = append(sp.Faults, d.fault(sp))
	}
	if d.maybe(30) {
		q := resource.MustParse("100Mi")
		sp.Images = []scenario.Image{{Name: "big", Layers: []scenario.Layer{{Bytes: resource.MustParse("1Gi")}, {Digest: "base", Bytes: resource.MustParse("200Mi")}}}}
		sp.Storage.SharedRate = &q
	}
	sp.Policy.Flags = d.flags()
	if d.maybe(25) {
		sp.Objects = d.storage()
	}
	sp.End = scenario.End{At: metav1.Duration{Duration: 12 * time.Hour}, Quiet: metav1.Duration{Duration: 25 * time.Minute}}
	sp.Policy.Flags = append(sp.Policy.Flags, d.delayAfterTaint()...)
	sp.Faults = append(sp.Faults, d.noAnswers()...)
	d.odd(sp)
	return s
}

// delayAfterTaint draws how long nodes stand marked for removal before it begins. Some do so for
// long enough that pods come meanwhile.
func (d dice) delayAfterTaint() []string {
	if !d.maybe(25) {
		return nil
	}
	return []string{"--node-delete-delay-after-taint=" + one(d, "30s", "2m")}
}

// storage draws a StatefulSet whose volumes are provisioned where its pods go, or exist
// on some of the nodes. There may be fewer local volumes than pods, and a topology without a node:
// then pods wait to the end, which is no defect.
func (d dice) storage() []map[string]any {
	class := map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": "disks"},
		"provisioner": "csi.example", "volumeBindingMode": "WaitForFirstConsumer"}
	out := []map[string]any{class}
	if d.maybe(30) {
		class["provisioner"] = "kubernetes.io/no-provisioner"
		for i := range d.from(1, 4) {
			pv := map[string]any{"storageClassName": "disks", "capacity": map[string]any{"storage": "2Gi"}, "accessModes": []any{"ReadWriteOnce"}, "local": map[string]any{"path": "/d"}}
			if d.maybe(50) {
				pv["nodeAffinity"] = map[string]any{"required": map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
					map[string]any{"key": v1.LabelTopologyZone, "operator": "In", "values": []any{one(d, zones...)}}}}}}}
			}
			out = append(out, map[string]any{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": fmt.Sprint("disk-", i)},
				"spec": pv, "status": map[string]any{"phase": "Available"}})
		}
	} else if d.maybe(30) {
		class["allowedTopologies"] = []any{map[string]any{"matchLabelExpressions": []any{map[string]any{"key": v1.LabelTopologyZone, "values": []any{one(d, zones...), one(d, zones...)}}}}}
	}
	set := map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "stored"}, "spec": map[string]any{
		"replicas": d.from(1, 5), "podManagementPolicy": one(d, "OrderedReady", "Parallel"),
		"selector": map[string]any{"matchLabels": map[string]any{"app": "stored"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "stored"}}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": one(d, "100m", "1")}}}}}},
		"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}, "spec": map[string]any{
			"storageClassName": "disks", "accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}}},
	}}
	return append(out, set)
}

// noAnswers draws whether, and for how long, orders and deletions have no answer. What is carried
// out late is so within the two minutes for which Berth waits.
func (d dice) noAnswers() []scenario.Fault {
	if !d.maybe(25) {
		return nil
	}
	f := scenario.Fault{Kind: scenario.CloudNoAnswer, Rate: one(d, 0.2, 0.5, 1), From: d.dur(0, 15*time.Minute), For: d.dur(5*time.Second, 100*time.Second)}
	f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(time.Minute, 25*time.Minute).Duration}
	return []scenario.Fault{f}
}

// template draws what a node offers. Small pod limits are among the values: a node is full by them
// while it has CPU left.
func (d dice) template() simulatedgroup.Template {
	t := simulatedgroup.Template{Allocatable: v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse(one(d, "2", "4", "8")),
		v1.ResourceMemory: resource.MustParse(one(d, "4Gi", "8Gi", "16Gi")),
		v1.ResourcePods:   resource.MustParse(one(d, "5", "20", "110")),
	}, Labels: map[string]string{}}
	if d.maybe(60) {
		t.Labels[v1.LabelTopologyZone] = one(d, zones...)
	}
	if d.maybe(20) {
		t.Labels["disk"] = "ssd"
	}
	if d.maybe(20) {
		t.Taints = append(t.Taints, v1.Taint{Key: "special", Effect: one(d, v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule)})
	}
	return t
}

// group draws the i-th node group. Most have no nodes at first and can't have many: limits, stock and
// failed launches should be met within the world's time.
func (d dice) group(i int) scenario.NodeGroup {
	g := scenario.NodeGroup{GroupConfig: simulatedgroup.GroupConfig{
		Name: fmt.Sprintf("g%d", i), Max: d.from(1, 8), PricePerHour: 0.1 * float64(d.from(1, 9)),
		LaunchDelay: d.span(5*time.Second, time.Minute), Startup: d.span(time.Second, 20*time.Second), Template: d.template(),
	}}
	if d.maybe(25) {
		g.Min = d.from(0, min(g.Max, 2))
	}
	if d.maybe(30) {
		g.Initial = d.from(g.Min, g.Max)
	} else {
		g.Initial = g.Min
	}
	if d.maybe(20) {
		g.LaunchesPerSecond = one(d, 0.1, 1, 5)
	}
	if d.maybe(10) {
		g.FailureRate = one(d, 0.1, 0.5)
	}
	if d.maybe(10) {
		g.Stock = new(d.from(max(g.Initial, 1), g.Max))
	}
	if d.maybe(20) {
		b, r := resource.MustParse("500Mi"), resource.MustParse(one(d, "20Mi", "100Mi"))
		g.Boot = scenario.Boot{Bytes: &b, Rate: &r}
	}
	return g
}

// workload draws the i-th workload: pods that end, or controllers that may be deleted.
func (d dice) workload(i int) scenario.Workload {
	w := scenario.Workload{
		Name: fmt.Sprintf("w%d", i), Kind: one(d, "Pod", "Pod", "Job", "Job", "ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet"),
		Count: d.from(1, 10), Copies: one(d, 0, 0, 2, 3), Service: d.maybe(30),
		Arrive: scenario.Arrive{After: d.dur(0, 10*time.Minute), Over: d.dur(0, 15*time.Minute), Pattern: one(d, "", "poisson")},
	}
	if d.maybe(10) {
		w.Namespace = "other"
	}
	switch w.Kind {
	case "Pod", "Job":
		run := d.span(5*time.Second, 20*time.Minute)
		w.RunFor = &run
		if d.maybe(10) {
			w.DeleteAfter = d.dur(time.Minute, 20*time.Minute)
		}
	case "DaemonSet":
		w.Copies = 0
		if d.maybe(30) {
			w.DeleteAfter = d.dur(10*time.Minute, 40*time.Minute)
		}
	default:
		if d.maybe(60) {
			w.DeleteAfter = d.dur(5*time.Minute, 40*time.Minute)
		}
		if d.maybe(40) {
			w.MaxUnavailable = new(d.from(0, 2))
		}
	}
	d.podSpec(&w)
	return w
}

// podSpec draws the pods of a workload. Some may fit on no node (the largest request, a selector
// that no template has), and gates are never lifted: the world must come to rest with such pods pending.
func (d dice) podSpec(w *scenario.Workload) {
	p := &w.Template.Spec
	p.Containers = []v1.Container{{Name: "c", Image: one(d, "small", "small", "big"), Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}}
	req := p.Containers[0].Resources.Requests
	if w.Kind == "DaemonSet" {
		req[v1.ResourceCPU] = resource.MustParse(one(d, "50m", "200m"))
		if d.maybe(50) {
			p.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
		}
		return
	}
	if d.maybe(90) {
		req[v1.ResourceCPU] = resource.MustParse(one(d, "100m", "500m", "1", "3", "7"))
		req[v1.ResourceMemory] = resource.MustParse(one(d, "100Mi", "1Gi", "3Gi"))
	}
	if d.maybe(25) {
		p.Tolerations = []v1.Toleration{{Key: "special", Operator: v1.TolerationOpExists}}
	} else if d.maybe(10) {
		p.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	}
	if d.maybe(15) {
		p.NodeSelector = map[string]string{v1.LabelTopologyZone: one(d, zones...)}
	}
	if d.maybe(10) {
		p.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if d.maybe(40) {
		p.Priority = new(int32(d.from(-5, 5)))
		if d.maybe(10) {
			p.PreemptionPolicy = new(v1.PreemptNever)
		}
	}
	if d.maybe(20) {
		p.TerminationGracePeriodSeconds = new(int64(d.from(0, 60)))
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.Name}}
	if w.Copies == 0 && d.maybe(25) {
		p.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: one(d, v1.LabelHostname, v1.LabelHostname, v1.LabelTopologyZone), LabelSelector: app}}}}
	}
	if d.maybe(20) {
		p.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: one(d, v1.LabelHostname, v1.LabelTopologyZone),
			WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: app}}
	}
	if d.maybe(5) {
		p.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	}
	if d.maybe(5) {
		p.SchedulingGates = []v1.PodSchedulingGate{{Name: "never-lifted"}}
	}
}

// fault draws a fault that ends within 40 minutes. A group may be named for any kind; kinds that are
// about no group ignore it.
func (d dice) fault(sp *scenario.Spec) scenario.Fault {
	kinds := scenario.DrawnFaultKinds()
	f := scenario.Fault{Kind: kinds[d.IntN(len(kinds))], From: d.dur(0, 15*time.Minute)}
	f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(time.Minute, 25*time.Minute).Duration}
	switch {
	case scenario.IsEvent(f.Kind):
		if d.maybe(50) {
			f.PerHour = one(d, 4.0, 20, 120)
		} else {
			f.At = []metav1.Duration{d.dur(0, 30*time.Minute)}
		}
		if d.maybe(50) {
			f.For = d.dur(time.Second, 3*time.Minute)
		}
	case f.Kind != scenario.StockOut:
		f.Rate = one(d, 0.05, 0.3, 0.8)
	}
	if d.maybe(20) {
		f.Group = sp.NodeGroups[d.IntN(len(sp.NodeGroups))].Name
	}
	return f
}

// flags draws a policy whose timers are short. Each value is one that a person could choose, and each
// timer is far shorter than the quiet time that ends a world.
func (d dice) flags() []string {
	out := []string{
		"--scan-interval=" + one(d, "5s", "10s", "20s"),
		"--scale-down-unneeded-time=" + one(d, "10s", "1m", "3m"),
		"--scale-down-unready-time=" + one(d, "2m", "4m"),
		"--scale-down-delay-after-add=" + one(d, "0s", "30s", "2m"),
		"--scale-down-delay-after-failure=1m",
		"--max-node-provision-time=" + one(d, "3m", "6m"),
		"--max-node-startup-time=3m",
		"--initial-node-group-backoff-duration=1m",
		"--max-node-group-backoff-duration=4m",
	}
	if d.maybe(20) {
		out = append(out, fmt.Sprintf("--max-nodes-total=%d", d.from(4, 10)))
	}
	if d.maybe(30) {
		out = append(out, fmt.Sprintf("--max-nodes-launching=%d", d.from(1, 4)))
	}
	if d.maybe(30) {
		out = append(out, "--max-scale-down-parallelism=1")
	}
	if d.maybe(30) {
		out = append(out, "--daemonset-eviction-for-empty-nodes")
	}
	if d.maybe(20) {
		out = append(out, "--force-delete-unregistered-nodes")
	}
	return out
}
