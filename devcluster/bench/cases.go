package bench

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// This file is what contenders are measured with: the workload of each case. Its pods are in
// shapes.go, what is there before and happens meanwhile in prepare.go and during.go.

// Case is a workload. The shapes are those of kube-scheduler's own benchmark, scheduler_perf:
// nodes of 4 CPUs, 32 GiB and 110 pods, pods of 100m and 500 MiB. A field that is left out is as in the
// basic case. Functions get the number of the pod or node, from 0, and must return equal objects for
// equal numbers: each run creates them anew.
type Case struct {
	Name, About string
	// Upstream is its name in scheduler_perf, "" of one that isn't there.
	Upstream string
	// nodes returns how many nodes there are; nil means Size.Nodes.
	nodes func(s Size) int
	// node changes the i-th of n nodes; nil for none.
	node func(i, n int, node *v1.Node)
	// attach is how many volumes of the CSI driver can be attached to a node; 0 for any number.
	attach int32
	// before are pods that are there before the run.
	before []standing
	// pods returns how many pods are measured; nil means Size.Pods.
	pods func(s Size) int
	// most is how many pods are measured at most; 0 for any number.
	most int
	// shape returns the i-th measured pod.
	shape func(i int) *v1.Pod
	// volume returns the volume of the i-th measured pod's claim, which is bound; nil for pods
	// without one.
	volume func(i int) *v1.PersistentVolume
	// groups returns the node groups of the simulated provider that a contender may grow, in
	// its file's form; nil where there is no autoscaler. kube-scheduler has Berth beside it as one.
	groups func(s Size) string
	// devices is how many devices a node has.
	devices int
	// taken is how many of all nodes' devices are taken before; nil for none.
	taken func(s Size) int
	// claim returns the claim for devices that is made for the i-th measured pod; nil for pods
	// without one.
	claim func(i int) *resourcev1.ResourceClaim
	// shared says that each five pods use a claim that is there before.
	shared bool
	// steady is how many measured pods wait at a time: each that is bound is deleted, with its claim,
	// and the next one comes. 0 has all pods there at the start.
	steady int
	// group has the measured pods be members of pod groups; nil for none.
	group *grouping
	// victims is how many of the pods that are there before leave a node for each measured pod; 0 for none, or where
	// the number isn't always the same.
	victims int
	// comeLast delays the creation of the measured pods until the contender has tried all pods that were waiting before.
	// A bare loop tries none, so there they are created at once.
	comeLast bool
	// services are the names of Services, each selecting pods by its name as label app.
	services []string
	// during is what happens while the contender works, until it returns or the context ends; nil
	// for nothing.
	during func(ctx context.Context, b *bench, s Size) error
	// late says that pods can't all be placed at the start: the run is timed from the contender's
	// start.
	late bool
}

// standing are pods that are there before the run.
type standing struct {
	count func(s Size) int
	shape func(i int) *v1.Pod
	// namespace is that of the i-th pod; nil means one of their own.
	namespace func(i int) string
	waiting   bool // they have no node; otherwise they are on the nodes in turn
	deleted   bool // they were deleted, and finalizers hold them
	// group has them be members of pod groups, all in the namespace of the first; nil for none.
	group *grouping
	// port is the host port of the first pod on each node. The next ones there have the ports after it; 0 for no ports.
	port int32
}

// Size is how many nodes and measured pods a case has.
type Size struct{ Nodes, Pods int }

// Full is the size of scheduler_perf's large workloads, and Small one for a machine of two cores
// that also runs the API server.
var (
	Full  = Size{Nodes: 5000, Pods: 10000}
	Small = Size{Nodes: 500, Pods: 1000}
)

func nodesOf(s Size) int    { return s.Nodes }
func noNode(Size) int       { return 0 }
func podsOf(s Size) int     { return s.Pods }
func fifthNode(s Size) int  { return max(1, s.Nodes/5) }
func oneNode(Size) int      { return 1 }
func twiceNodes(s Size) int { return 2 * s.Nodes }

// onePerNode is how many pods can be measured that take a node each, and fourPerNode fill all.
func onePerNode(s Size) int        { return min(s.Pods, s.Nodes) }
func tenPerNode(s Size) int        { return 10 * s.Nodes }
func fourPerNode(s Size) int       { return 4 * s.Nodes }
func fourPerNodeAtMost(s Size) int { return min(s.Pods, fourPerNode(s)) }
func fivePerNode(s Size) int       { return 5 * s.Nodes }
func fivePerNodeAtMost(s Size) int { return min(s.Pods, perNode/2*s.Nodes) }
func twoOfFive(s Size) int         { return min(s.Pods, max(1, s.Nodes*2/5)) }

// Shares of all devices that are taken before: half, and all but ten.
func halfTaken(s Size) int { return perNode * s.Nodes / 2 }
func tenLeft(s Size) int   { return perNode*s.Nodes - 10 }

// Cases are all cases, in the order in which they run.
var Cases = []Case{
	{Name: "basic", Upstream: "SchedulingBasic", About: "plain pods of one shape", shape: plain},
	{Name: "node-affinity", Upstream: "SchedulingNodeAffinity", About: "required node affinity to two of three zones", shape: func(i int) *v1.Pod { return zoned(plain(i)) }},
	{Name: "anti-affinity", Upstream: "SchedulingPodAntiAffinity", About: "required anti-affinity by hostname: at most two pods for five nodes",
		before: []standing{{count: fifthNode, shape: func(i int) *v1.Pod { return apart(plain(i), "green", measuredAndBeside) }, namespace: inBeside}},
		pods:   twoOfFive, shape: func(i int) *v1.Pod { return apart(plain(i), "green", measuredAndBeside) }},
	{Name: "matching-anti-affinity", Upstream: "SchedulingPodMatchingAntiAffinity", About: "plain pods whose label the anti-affinity of others on a fifth of the nodes keeps away",
		before: []standing{{count: fifthNode, shape: func(i int) *v1.Pod { return apart(plain(i), "green", measuredAndBeside) }, namespace: inBeside}},
		shape:  func(i int) *v1.Pod { return coloured(plain(i), "green") }},
	{Name: "affinity", Upstream: "SchedulingPodAffinity", About: "required affinity by zone to pods like themselves, all nodes in one zone", node: inOneZone,
		before: []standing{{count: nodesOf, shape: func(i int) *v1.Pod { return together(plain(i), "blue", measuredAndBeside) }, namespace: inBeside}},
		shape:  func(i int) *v1.Pod { return together(plain(i), "blue", measuredAndBeside) }},
	{Name: "preferred-affinity", Upstream: "SchedulingPreferredPodAffinity", About: "preferred affinity by hostname to pods like themselves",
		before: []standing{{count: nodesOf, shape: func(i int) *v1.Pod { return liking(plain(i), "red", measuredAndBeside) }, namespace: inBeside}},
		shape:  func(i int) *v1.Pod { return liking(plain(i), "red", measuredAndBeside) }},
	{Name: "preferred-anti-affinity", Upstream: "SchedulingPreferredPodAntiAffinity", About: "the same, away from them",
		before: []standing{{count: nodesOf, shape: func(i int) *v1.Pod { return avoiding(plain(i), "yellow", measuredAndBeside) }, namespace: inBeside}},
		shape:  func(i int) *v1.Pod { return avoiding(plain(i), "yellow", measuredAndBeside) }},
	{Name: "anti-affinity-namespaces", Upstream: "SchedulingRequiredPodAntiAffinityWithNSSelector", About: "required anti-affinity by hostname to pods of the namespaces of a label",
		before: []standing{{count: fifthNode, shape: func(i int) *v1.Pod { return apart(plain(i), "green", theTeams) }, namespace: inTeams}},
		pods:   twoOfFive, shape: func(i int) *v1.Pod { return apart(plain(i), "green", theTeams) }},
	{Name: "preferred-anti-affinity-namespaces", Upstream: "SchedulingPreferredAntiAffinityWithNSSelector", About: "preferred anti-affinity to them",
		before: []standing{{count: nodesOf, shape: func(i int) *v1.Pod { return avoiding(plain(i), "yellow", theTeams) }, namespace: inTeams}},
		shape:  func(i int) *v1.Pod { return avoiding(plain(i), "yellow", theTeams) }},
	{Name: "affinity-namespaces", Upstream: "SchedulingRequiredPodAffinityWithNSSelector", About: "required affinity by zone to them, all nodes in one zone", node: inOneZone,
		before: []standing{{count: nodesOf, shape: func(i int) *v1.Pod { return together(plain(i), "blue", theTeams) }, namespace: inTeams}},
		shape:  func(i int) *v1.Pod { return together(plain(i), "blue", theTeams) }},
	{Name: "preferred-affinity-namespaces", Upstream: "SchedulingPreferredAffinityWithNSSelector", About: "preferred affinity to them",
		before: []standing{{count: nodesOf, shape: func(i int) *v1.Pod { return liking(plain(i), "red", theTeams) }, namespace: inTeams}},
		shape:  func(i int) *v1.Pod { return liking(plain(i), "red", theTeams) }},
	{Name: "mixed-base", Upstream: "MixedSchedulingBasePod", About: "plain pods, beside pods with affinity and anti-affinity of each kind", node: inOneZone,
		before: []standing{
			{count: fifthNode, shape: plain, namespace: inBeside},
			{count: fifthNode, shape: func(i int) *v1.Pod { return together(plain(i), "blue", measuredAndBeside) }, namespace: inBeside},
			{count: fifthNode, shape: func(i int) *v1.Pod { return apart(plain(i), "green", measuredAndBeside) }, namespace: inBeside},
			{count: fifthNode, shape: func(i int) *v1.Pod { return liking(plain(i), "red", measuredAndBeside) }, namespace: inBeside},
			{count: fifthNode, shape: func(i int) *v1.Pod { return avoiding(plain(i), "yellow", measuredAndBeside) }, namespace: inBeside},
		}, shape: plain},
	{Name: "zone-spread", Upstream: "TopologySpreading", About: "hard spread over three zones, at most 5 apart",
		shape: func(i int) *v1.Pod { return spread(plain(i), v1.DoNotSchedule) }},
	{Name: "soft-spread", Upstream: "PreferredTopologySpreading", About: "soft spread over three zones, at most 5 apart",
		shape: func(i int) *v1.Pod { return spread(plain(i), v1.ScheduleAnyway) }},
	{Name: "service-spread", Upstream: "DefaultTopologySpreading", About: "pods that a Service selects: spread by default",
		services: []string{"app-0"}, shape: func(i int) *v1.Pod { return app(plain(i), "app-0") }},
	{Name: "node-inclusion", Upstream: "SchedulingWithNodeInclusionPolicy", About: "hard spread by hostname, at most 1 apart, over the nodes whose taints pods tolerate: four of five", node: taintedFifth,
		shape: func(i int) *v1.Pod { return including(plain(i)) }},
	{Name: "daemon-set", Upstream: "SchedulingDaemonset", About: "pods whose affinity names one node among all", node: roomyFirst,
		shape: func(i int) *v1.Pod { return named(light(i), nodeName(0)) }},
	{Name: "extended-resource", Upstream: "SchedulingWithExtendedResource", About: "a resource of its own on each node, which one pod asks for", node: withResource,
		pods: onePerNode, shape: func(i int) *v1.Pod { return asking(plain(i), resourceOf(i)) }},
	{Name: "secrets", Upstream: "SchedulingSecrets", About: "pods with a Secret as volume", shape: func(i int) *v1.Pod { return withSecret(plain(i)) }},
	{Name: "csi-volumes", Upstream: "SchedulingCSIPVs", About: "pods with a volume of a CSI driver that attaches 39 to a node", attach: 39,
		shape: func(i int) *v1.Pod { return withClaim(plain(i)) }, volume: csiVolume},
	{Name: "in-tree-volumes", Upstream: "SchedulingInTreePVs, SchedulingMigratedInTreePVs", About: "the same with volumes of a plugin in the tree that was migrated to CSI", attach: 39,
		shape: func(i int) *v1.Pod { return withClaim(plain(i)) }, volume: inTreeVolume},
	{Name: "preemption", Upstream: "PreemptionBasic", About: "every node is full of four pods of low priority; each pod takes the place of three; timed from the scheduler's start", late: true, victims: 3,
		before: []standing{{count: fourPerNode, shape: low}}, pods: onePerNode, shape: urgent},
	{Name: "preemption-volumes", Upstream: "PreemptionPVs", About: "the same, and each has a volume", late: true,
		before: []standing{{count: fourPerNode, shape: low}}, pods: onePerNode, shape: func(i int) *v1.Pod { return withClaim(urgent(i)) }, volume: inTreeVolume},
	{Name: "preemption-beside", Upstream: "PreemptionAsync", About: "plain pods, while pods of high priority take the place of those of low priority that fill the nodes",
		before: []standing{{count: fourPerNode, shape: low}}, pods: onePerNode, shape: plain,
		during: each(200, func(i int) *v1.Pod { return urgent(i) })},
	{Name: "unschedulable", Upstream: "Unschedulable (5kNodes/100Init)", About: "plain pods, while pods of high priority come that fit nowhere", shape: plain, during: each(200, huge)},
	{Name: "backlog", Upstream: "Unschedulable (5kNodes/20kInit)", About: "the same, with twice as many as the measured pods that fit nowhere and are there before",
		before: []standing{{count: func(s Size) int { return 2 * s.Pods }, shape: huge, waiting: true}}, shape: plain, during: each(200, huge)},
	{Name: "mixed-churn", Upstream: "SchedulingWithMixedChurn", About: "plain pods, while a node, a Service and a pod that fits nowhere come and go every second", shape: plain, during: comeAndGo},
	{Name: "gated", Upstream: "SchedulingWhileGated", About: "plain pods for one node, while others are deleted there and as many as are measured wait for their gates", nodes: oneNode, node: roomyFirst,
		before: []standing{{count: podsOf, shape: gated, waiting: true}, {count: podsOf, shape: light}}, shape: light, during: deleteStanding(50)},
	{Name: "gated-affinity", Upstream: "SchedulingGatedPodsWithPodAffinityImpactForThroughput", About: "plain pods for one node that the affinity of gated ones selects", nodes: oneNode, node: roomyFirst,
		before: []standing{{count: podsOf, shape: func(i int) *v1.Pod { return drawn(gated(i), v1.LabelHostname) }, waiting: true}},
		shape:  func(i int) *v1.Pod { return app(light(i), "app-0") }},
	{Name: "held-by-finalizers", Upstream: "SchedulingDeletedPodsWithFinalizers", About: "plain pods, with as many that were deleted before they had a node and finalizers hold",
		before: []standing{{count: podsOf, shape: held, waiting: true, deleted: true}}, shape: light},
	{Name: "pod-deletes", Upstream: "EventHandlingPodDelete", About: "pods that wait for others to be deleted: by room and by anti-affinity; 100 go a second", late: true,
		before: []standing{{count: nodesOf, shape: blocking}}, pods: onePerNode, shape: blocked, during: deleteStanding(100)},
	{Name: "pod-updates", Upstream: "EventHandlingPodUpdate", About: "pods that wait for their gate to be taken away: 100 a second", late: true, shape: gated, during: ungate(100)},
	{Name: "pod-adds", Upstream: "EventHandlingPodAdd", About: "pods that wait for pods to come that their required affinity by zone names", late: true,
		shape: func(i int) *v1.Pod { return drawn(plain(i), v1.LabelTopologyZone) }, during: each(1000, func(i int) *v1.Pod { return app(light(i), "app-0") })},
	{Name: "node-adds", Upstream: "EventHandlingNodeAdd", About: "pods that need a node each, and nodes come, 50 a second", late: true,
		nodes: oneNode, pods: onePerNode, shape: func(i int) *v1.Pod { return sized(plain(i), "3") }, during: addNodes(50)},
	{Name: "node-updates", Upstream: "EventHandlingNodeUpdate", About: "all nodes are cordoned, and 50 are uncordoned a second; pods need a node each", late: true, node: cordoned,
		pods: onePerNode, shape: func(i int) *v1.Pod { return sized(plain(i), "3") }, during: uncordon(50)},
	{Name: "mixed", About: "all of these in turn, of eight apps behind Services", services: apps(8), shape: mixed},
	{Name: "signatures", About: "500 classes: requests of 50 sizes, of ten apps behind Services", services: apps(10), shape: func(i int) *v1.Pod {
		return sized(app(plain(i), appName(i%10)), millis(50+i/10%50))
	}},
	{Name: "burst", About: "pods of 500 classes on an empty cluster: nodes are bought for them and come within ten seconds; kube-scheduler runs beside Berth in --mode=autoscaler", late: true,
		nodes: noNode, groups: zoneGroups, services: apps(10), pods: fourPerNodeAtMost, shape: func(i int) *v1.Pod {
			return sized(app(plain(i), appName(i%10)), millis(400+10*(i/10%50)))
		}},
	{Name: "spread-apps", About: "apps of ten pods on an empty cluster, each with its own hard zone spread and a required node affinity, nine groups in three zones; kube-scheduler runs beside Berth in --mode=autoscaler", late: true,
		nodes: noNode, groups: sizeGroups, shape: spreadApp},
	{Name: "storm", About: "plain pods, with five times as many that fit nowhere, while labels of 50 nodes change a second and pods are deleted",
		before: []standing{{count: func(s Size) int { return 5 * s.Pods }, shape: huge, waiting: true}, {count: nodesOf, shape: light}}, shape: plain, during: eventStorm},
	{Name: "gangs-3", Upstream: "GangScheduling, 3 per group", About: "gangs of three", group: &grouping{size: 3, gang: true}, shape: small},
	{Name: "gangs-1000", Upstream: "GangScheduling, 1000PerGroup", About: "gangs of a thousand", group: &grouping{size: 1000, gang: true}, shape: small},
	{Name: "groups-3", Upstream: "BasicScheduling, 3 per group", About: "groups of three with the basic policy", group: &grouping{size: 3}, shape: small},
	{Name: "groups-1000", Upstream: "BasicScheduling, 1000PerGroup", About: "groups of a thousand with the basic policy", group: &grouping{size: 1000}, shape: small},
	{Name: "gangs-rack", Upstream: "TopologyAwareScheduling, 4 per group", About: "gangs of four, each in one rack of 100 nodes", group: &grouping{size: 4, gang: true, topology: rackLabel}, node: racked, shape: small},
	{Name: "gangs-1000-rack", Upstream: "TopologyAwareScheduling, 1000PerGroup", About: "gangs of a thousand, each in one rack", group: &grouping{size: 1000, gang: true, topology: rackLabel}, node: racked, shape: small},
	{Name: "gang-preemption", Upstream: "GangPreemptionBasic, 10 per group", About: "gangs of ten that need a node for each member, where ten pods of low priority are", late: true, victims: 10, group: &grouping{size: 10, gang: true},
		before: []standing{{count: tenPerNode, shape: tiny, port: lowPort}}, pods: onePerNode, shape: filling},
	{Name: "gang-preemption-100", Upstream: "GangPreemptionBasic, 100 per group", About: "the same with gangs of a hundred", late: true, victims: 10, group: &grouping{size: 100, gang: true},
		before: []standing{{count: tenPerNode, shape: tiny, port: lowPort}}, pods: onePerNode, shape: filling},
	{Name: "gang-preemption-gangs", Upstream: "GangPreemptionPodGroups, 10 per group", About: "gangs of ten that need a node for each member, where members of five other gangs of ten are, with a lower priority", late: true, victims: 5, group: &grouping{size: 10, gang: true},
		before: []standing{{count: fivePerNode, shape: fifth, port: lowPort, group: &grouping{size: 10, gang: true}}},
		pods:   onePerNode, shape: func(i int) *v1.Pod { return roomy(i, i/10) }},
	{Name: "gang-preemption-gangs-100", Upstream: "GangPreemptionPodGroups, 100 per group", About: "the same with gangs of a hundred", late: true, victims: 5, group: &grouping{size: 100, gang: true},
		before: []standing{{count: fivePerNode, shape: fifth, port: lowPort, group: &grouping{size: 100, gang: true}}},
		pods:   onePerNode, shape: func(i int) *v1.Pod { return roomy(i, i/100) }},
	{Name: "gang-preemption-affinity", Upstream: "GangPreemptionAffinity, 10 per group", About: "gangs of ten that need a node for each member, where ten pods of low priority are, beside a pod that they have to be with", late: true, victims: 10, group: &grouping{size: 10, gang: true},
		before: []standing{{count: nodesOf, shape: anchor, port: anchorPort, namespace: inBeside}, {count: tenPerNode, shape: tinyBlue, port: lowPort}}, pods: onePerNode, shape: anchored},
	{Name: "gang-preemption-affinity-100", Upstream: "GangPreemptionAffinity, 100 per group", About: "the same with gangs of a hundred", late: true, victims: 10, group: &grouping{size: 100, gang: true},
		before: []standing{{count: nodesOf, shape: anchor, port: anchorPort, namespace: inBeside}, {count: tenPerNode, shape: tinyBlue, port: lowPort}}, pods: onePerNode, shape: anchored},
	{Name: "gang-starvation", Upstream: "StarvationPodGroup", About: "500 pods that come when a gang of high priority was tried: its members, one for each node, are to be with pods that they may not be with, of which one comes each second",
		nodes: twiceNodes, node: bareNode, before: []standing{{count: twiceNodes, shape: torn, waiting: true, group: &grouping{gang: true}}},
		most: 500, comeLast: true, shape: slight, during: each(1000, attracting)},
	{Name: "groups-starvation", About: "the same with the basic policy", // which upstream's comments name, and its template hasn't
		nodes: twiceNodes, node: bareNode, before: []standing{{count: twiceNodes, shape: torn, waiting: true, group: &grouping{}}},
		most: 500, comeLast: true, shape: slight, during: each(1000, attracting)},
	{Name: "devices", Upstream: "SchedulingWithResourceClaimTemplate", About: "pods with a claim for one of ten devices of a node, of which half are taken",
		devices: perNode, taken: halfTaken, pods: fivePerNodeAtMost, shape: func(i int) *v1.Pod { return claiming(light(i)) }, claim: oneDevice},
	{Name: "devices-empty", Upstream: "SchedulingWithResourceClaimTemplate (empty)", About: "the same with no device taken; ten pods wait at a time, and one that is bound goes with its claim",
		devices: perNode, steady: 10, shape: func(i int) *v1.Pod { return claiming(light(i)) }, claim: oneDevice},
	{Name: "devices-half", Upstream: "SchedulingWithResourceClaimTemplate (half)", About: "the same with half of the devices taken",
		devices: perNode, taken: halfTaken, steady: 10, shape: func(i int) *v1.Pod { return claiming(light(i)) }, claim: oneDevice},
	{Name: "devices-full", Upstream: "SchedulingWithResourceClaimTemplate (full)", About: "the same with all but ten of the devices taken",
		devices: perNode, taken: tenLeft, steady: 10, shape: func(i int) *v1.Pod { return claiming(light(i)) }, claim: oneDevice},
	{Name: "devices-selector", Upstream: "SchedulingWithResourceClaimTemplate (selector)", About: "claims with a CEL expression that all devices match; none is taken, ten pods wait at a time",
		devices: perNode, steady: 10, shape: func(i int) *v1.Pod { return claiming(light(i)) }, claim: func(int) *resourcev1.ResourceClaim { return selected(claimFor(1)) }},
	{Name: "devices-match", Upstream: "SchedulingWithResourceClaimTemplate (match)", About: "claims for five devices on one PCI root, of which each node has two; ten pods wait at a time",
		devices: perNode, steady: 10, shape: func(i int) *v1.Pod { return claiming(light(i)) }, claim: func(int) *resourcev1.ResourceClaim { return alike(claimFor(5)) }},
	{Name: "devices-shared", Upstream: "SchedulingWithResourceClaim", About: "claims for one of two devices of a node, which five pods share each",
		devices: 2, shared: true, shape: func(i int) *v1.Pod { return sharing(light(i), i) }},
	{Name: "devices-extended", Upstream: "ExtendedResource", About: "extended resources that 25 device classes back, with no claims by users; half of the devices are taken",
		devices: perNode, taken: halfTaken, pods: fivePerNodeAtMost, shape: func(i int) *v1.Pod { return asking(plain(i), extendedName(i)) }},
}

// enough returns a size with so many times the nodes that all pods can be measured, or as many as the case has at most.
func (c Case) enough(s Size) Size {
	for more := s; ; more.Nodes += s.Nodes {
		if c.size(more) >= c.atMost(s.Pods) {
			return more
		}
	}
}

// hasPodGroups reports whether pods of the case are members of pod groups.
func (c Case) hasPodGroups() bool {
	return c.group != nil || slices.ContainsFunc(c.before, func(x standing) bool { return x.group != nil })
}

// size returns how many pods are measured.
func (c Case) size(s Size) int {
	if c.pods != nil {
		return c.atMost(c.pods(s))
	}
	return c.atMost(s.Pods)
}

// atMost returns how many of n pods are measured.
func (c Case) atMost(n int) int {
	if c.most > 0 {
		return min(n, c.most)
	}
	return n
}
