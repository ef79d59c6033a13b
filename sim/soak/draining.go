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

// This file draws worlds in which nodes are drained: a cluster that is large enough for
// services of which some go, so that the nodes of the others are worth emptying, with
// budgets, pods that keep their nodes, and faults that hit drains. As in generate.go the
// draws are in sequence.

// drainFaults are the kinds of faults that these worlds have. One that is there twice is drawn twice
// as often.
var drainFaults = []string{
	scenario.ForbidEvictions, scenario.ForbidEvictions, scenario.SlowStop, scenario.SlowStop, scenario.ControllerStalls,
	scenario.DeletionFails, scenario.DeletionFails, scenario.ReclaimDraining, scenario.ReclaimDraining,
	scenario.CrashBerth, scenario.CrashBerth, scenario.APIError, scenario.APIConflict, scenario.APITimeout, scenario.AnswerLost,
	scenario.CloudError, scenario.CloudLost, scenario.WatchStall, scenario.DeletePod, scenario.EvictPod, scenario.Cordon,
}

// GenerateDraining draws a world in which nodes are drained. It comes to rest as those of
// Generate do. The number beside the seed makes its draws differ from Generate's of the same seed.
func GenerateDraining(seed uint64) *scenario.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 0x647261696e))}
	s := &scenario.Scenario{APIVersion: scenario.APIVersion, Kind: scenario.Kind, Metadata: scenario.Metadata{Name: fmt.Sprintf("draining-%d", seed)}}
	sp := &s.Spec
	sp.Seed = seed
	for i := range d.from(1, 3) {
		sp.NodeGroups = append(sp.NodeGroups, d.fullGroup(i))
	}
	if d.maybe(20) {
		sp.Nodes = append(sp.Nodes, scenario.Nodes{Name: "fixed", Count: d.from(1, 2), Zones: zones[:d.from(1, 3)], Template: d.serviceNode()})
	}
	for i := range d.from(3, 8) {
		sp.Workload = append(sp.Workload, d.service(i))
	}
	for range d.IntN(5) {
		sp.Faults = append(sp.Faults, d.drainFault(sp))
	}
	sp.Policy.Flags = d.drainFlags()
	sp.End = scenario.End{At: metav1.Duration{Duration: 12 * time.Hour}, Quiet: metav1.Duration{Duration: 25 * time.Minute}}
	sp.Policy.Flags = append(sp.Policy.Flags, d.delayAfterTaint()...)
	sp.Faults = append(sp.Faults, d.noAnswers()...)
	d.odd(sp)
	return s
}

// serviceNode draws what a node for services offers. All take several of the pods below, so that
// a drained node's pods can be told apart by what becomes of them.
func (d dice) serviceNode() simulatedgroup.Template {
	return simulatedgroup.Template{Allocatable: v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse(one(d, "4", "8")),
		v1.ResourceMemory: resource.MustParse(one(d, "8Gi", "16Gi")),
		v1.ResourcePods:   resource.MustParse(one(d, "8", "110")),
	}, Labels: map[string]string{v1.LabelTopologyZone: one(d, zones...)}}
}

// fullGroup draws the i-th node group, with nodes from the beginning: what is to be drained has to be
// there first. It can grow by two nodes at the most, so that the pods of a drained node often need
// room that other nodes have.
func (d dice) fullGroup(i int) scenario.NodeGroup {
	g := scenario.NodeGroup{GroupConfig: simulatedgroup.GroupConfig{
		Name: fmt.Sprintf("g%d", i), PricePerHour: 0.1 * float64(d.from(1, 9)),
		LaunchDelay: d.span(5*time.Second, time.Minute), Startup: d.span(time.Second, 20*time.Second), Template: d.serviceNode(),
	}}
	g.Initial = d.from(2, 7)
	g.Max = g.Initial + d.from(0, 2)
	if d.maybe(40) {
		g.Min = d.from(0, g.Initial)
	}
	return g
}

// service draws the i-th workload. Those that go make room for draining. Some are in kube-system,
// whose pods keep nodes while --skip-nodes-with-system-pods is on.
func (d dice) service(i int) scenario.Workload {
	w := scenario.Workload{
		Name: fmt.Sprintf("s%d", i), Kind: one(d, "ReplicaSet", "ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "StatefulSet", "Pod", "Job", "DaemonSet"),
		Count: d.from(1, 8), Service: d.maybe(40),
	}
	if d.maybe(20) {
		w.Arrive = scenario.Arrive{After: d.dur(0, 10*time.Minute), Over: d.dur(0, 10*time.Minute)}
	}
	switch w.Kind {
	case "Job":
		run := d.span(5*time.Minute, 40*time.Minute)
		w.RunFor = &run
	case "ReplicaSet", "StatefulSet", "Pod":
		if d.maybe(50) {
			w.DeleteAfter = d.dur(3*time.Minute, 20*time.Minute)
		}
		if w.Kind != "Pod" && d.maybe(60) {
			w.MaxUnavailable = new(d.from(0, 3))
		}
	}
	if d.maybe(10) {
		w.Namespace = metav1.NamespaceSystem
	}
	d.servicePod(&w)
	return w
}

// servicePod draws the pods of a service. Annotations, scratch volumes and grace periods are what
// decides whether and how long a pod keeps its node; one annotation has a value that isn't a boolean,
// as upstream allows it to be ignored.
func (d dice) servicePod(w *scenario.Workload) {
	p := &w.Template.Spec
	p.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}}
	req := p.Containers[0].Resources.Requests
	if w.Kind == "DaemonSet" {
		req[v1.ResourceCPU] = resource.MustParse(one(d, "50m", "200m"))
		return
	}
	req[v1.ResourceCPU] = resource.MustParse(one(d, "100m", "300m", "500m", "1"))
	req[v1.ResourceMemory] = resource.MustParse(one(d, "100Mi", "500Mi", "1Gi"))
	if d.maybe(50) {
		p.TerminationGracePeriodSeconds = new(int64(d.from(0, 120)))
	}
	if d.maybe(30) {
		p.Priority = new(int32(d.from(-2, 2)))
	}
	if d.maybe(15) {
		w.Template.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": one(d, "true", "false", "false", "maybe")}
	}
	if d.maybe(15) {
		p.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.Name}}
	if d.maybe(20) {
		p.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: v1.LabelHostname, LabelSelector: app}}}}
	}
	if d.maybe(25) {
		p.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: int32(d.from(1, 2)), TopologyKey: one(d, v1.LabelHostname, v1.LabelTopologyZone),
			WhenUnsatisfiable: one(d, v1.ScheduleAnyway, v1.DoNotSchedule), LabelSelector: app}}
	}
	if d.maybe(10) {
		p.NodeSelector = map[string]string{v1.LabelTopologyZone: one(d, zones...)}
	}
}

// drainFault draws a fault that ends within an hour.
func (d dice) drainFault(sp *scenario.Spec) scenario.Fault {
	f := scenario.Fault{Kind: one(d, drainFaults...), From: d.dur(0, 15*time.Minute)}
	f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(time.Minute, 40*time.Minute).Duration}
	switch {
	case scenario.IsEvent(f.Kind):
		f.PerHour = one(d, 10.0, 60, 200)
		if d.maybe(50) {
			f.For = d.dur(time.Second, 5*time.Minute)
		}
	default:
		f.Rate = one(d, 0.05, 0.3, 0.8)
		if f.Kind == scenario.SlowStop && d.maybe(60) {
			f.For = d.dur(10*time.Second, 20*time.Minute)
		}
	}
	return f
}

// drainFlags draws a policy that drains, with short timers. Drains by priority and the one grace
// period for all exclude each other, as with Cluster Autoscaler.
func (d dice) drainFlags() []string {
	out := []string{
		"--scan-interval=" + one(d, "5s", "10s"),
		"--scale-down-unneeded-time=" + one(d, "10s", "1m"),
		"--scale-down-unready-time=2m",
		"--scale-down-delay-after-add=" + one(d, "0s", "30s"),
		"--scale-down-delay-after-failure=" + one(d, "30s", "1m"),
		"--max-node-provision-time=5m",
		"--initial-node-group-backoff-duration=1m",
		"--max-node-group-backoff-duration=4m",
		"--unremovable-node-recheck-timeout=" + one(d, "0s", "30s", "2m"),
		"--max-drain-parallelism=" + one(d, "1", "5", "50"),
		"--max-scale-down-parallelism=" + one(d, "5", "50"),
		"--scale-down-utilization-threshold=" + one(d, "0.5", "0.7", "1"),
		"--max-pod-eviction-time=" + one(d, "20s", "2m"),
		"--skip-nodes-with-local-storage=" + one(d, "true", "false"),
		"--skip-nodes-with-system-pods=" + one(d, "true", "false"),
		"--node-deletion-batcher-interval=" + one(d, "0s", "5s"),
	}
	if d.maybe(30) {
		out = append(out, "--drain-priority-config="+one(d, "0:60", "-1:20,1:60", "0:5,1000:600"))
	} else {
		out = append(out, "--max-graceful-termination-sec="+one(d, "30", "600"))
	}
	if d.maybe(20) {
		out = append(out, "--cordon-node-before-terminating=false")
	}
	if d.maybe(20) {
		out = append(out, "--keep-evicted-pod-homes=false")
	}
	if d.maybe(20) {
		out = append(out, "--min-replica-count=2")
	}
	if d.maybe(20) {
		out = append(out, "--scale-down-delay-after-delete=20s")
	}
	if d.maybe(20) {
		out = append(out, "--daemonset-eviction-for-occupied-nodes=false")
	}
	return out
}
