// Package mutants plants faults where rules, engine and core rely on each other: a field that
// is missing in a signature, a node that a change doesn't touch, a hint that says no, a
// reservation that isn't given back. Its test checks that for each of them a test fails: for a few
// in every run, for all with -planted=all. hack/mutate draws changes at random instead, and tells
// for both which of them make test notices.
package mutants

import (
	"fmt"
	"strings"
)

// Mutant is a fault: in a file, the first occurrence of Old is replaced by New. Whoever changes
// that text plants the same fault in the new one.
type Mutant struct {
	Name     string
	File     string // relative to the module's root
	Old, New string
	Pkg, Run string // the tests that must fail: a package, and a pattern for go test's -run
	Checks   string // how many cases a property must draw for that, with the seed 1
}

// At returns where the replaced text begins and ends in the file's text.
func (m *Mutant) At(text string) (from, to int, err error) {
	from = strings.Index(text, m.Old)
	if from < 0 {
		return 0, 0, fmt.Errorf("%s no longer has %q: plant the fault %q elsewhere", m.File, m.Old, m.Name)
	}
	return from, from + len(m.Old), nil
}

// The properties that catch most faults.
const (
	signature = "PropertySignature|TellApart"
	cached    = "PropertyCached"
	hint      = "PropertyHint"
)

// All are the planted faults.
var All = []Mutant{
	{"the weight of a preferred term isn't signed", "core/plugins/interpodaffinity/interpodaffinity.go", "group.Int(int64(t.Weight))", "", "./core/engine", signature, "800"},
	{"whether a pod meets its own affinity isn't signed", "core/plugins/interpodaffinity/interpodaffinity.go", "group.Bool(selectsItself(pod, state))", "", "./core/engine", signature, "800"},
	{"labels that others' terms read aren't signed", "core/plugins/interpodaffinity/interpodaffinity.go", "group.OptStr(value, ok)", "_, _ = value, ok", "./core/engine", signature, "800"},
	{"of which keys labels' values are isn't signed", "core/plugins/interpodaffinity/interpodaffinity.go", "	group.Int(int64(state.TermsRead())) // which keys the values below are of\n", "", "./core/engine", "TestForgottenTerms", "1"},
	{"a change of a namespace signs no pod again", "core/plugins/interpodaffinity/interpodaffinity.go", "return read && pod.Object.Namespace == name || slices", "return read && pod.Object.Namespace == name && false || slices", "./core/plugins/interpodaffinity", "TestReclassifies", "1"},
	{"a value of a topology stays when its last node goes", "core/cluster/topology.go", "		delete(t.ids, n.Object.Labels[t.label])\n", "", "./core/cluster", "PropertyInvariants", "100"},
	{"minDomains isn't signed", "core/plugins/podtopologyspread/podtopologyspread.go", "group.Int(int64(c.hard[i].minDomains))", "", "./core/engine", signature, "800"},
	{"the skew isn't signed", "core/plugins/podtopologyspread/podtopologyspread.go", "group.Int(int64(c.maxSkew))", "", "./core/engine", signature, "800"},
	{"the tolerations' effect isn't signed", "core/plugins/tainttoleration/tainttoleration.go", "local.Str(string(t.Effect))", "", "./core/engine", signature, "800"},
	{"what is scored isn't signed", "core/plugins/noderesources/fit.go", "	signVector(&pod.Scored, local)\n", "", "./core/engine", signature, "800"},
	{"the number of containers isn't signed", "core/plugins/imagelocality/imagelocality.go", "local.Int(containers(pod))", "", "./core/engine", signature, "800"},
	{"the priority isn't signed", "core/engine/class.go", "e.keyBuf = binary.BigEndian.AppendUint32(e.keyBuf, uint32(p.Priority))", "_ = binary.BigEndian", "./core/engine", signature, "800"},
	{"which headrooms admit a pod isn't signed", "core/engine/class.go", "range e.admitting {", "range e.admitting[:0] {", "./core/engine", "TestAStandIn", "1"},
	{"whether a pod preempts isn't signed", "core/plugins/defaultpreemption/defaultpreemption.go", "sig.Bool(never(pod))", "", "./core/engine", signature, "1500"},
	{"nominated pods aren't left their place", "core/engine/view.go", "!slices.ContainsFunc(e.state.Node(n).Nominated, c.LeavesRoomFor)", "true || !slices.ContainsFunc(e.state.Node(n).Nominated, c.LeavesRoomFor)", "./core/engine", cached, "400"},
	{"what a dry run found is never forgotten", "core/engine/dryruns.go", "		d.forget(changes[i].Node)\n", "		_ = changes[i]\n", "./core/engine", cached, "1500"},
	{"a disruption budget changes nothing", "core/engine/dryruns.go", "all = all || beyond || isBudget(changes[i].Object)", "all = all || beyond", "./core/engine", "TestABudgetChanges", "1"},
	{"who could preempt isn't woken", "core/engine/wake.go", "help == NoHelp && e.dryRun(f, n) != nil {", "help == NoHelp && e.dryRun(f, n) != nil && false {", "./core/engine", hint, "1500"},
	{"rules behind others don't hint at preemption", "core/engine/wake.go", "if preempts && help == NoHelp && c.LooksBeyondNode()", "if false && help == NoHelp && c.LooksBeyondNode()", "./core/engine", hint, "40000"},
	{"a class's claims are known by name", "core/plugins/volumebinding/match.go", "if claim.named {", "if claim.named || true {", "./core/engine", cached, "1500"},
	{"amounts that take forever to be counted with stay", "core/cluster/amounts.go", "	case f > 1e30:\n		*q = largestAmount\n", "", "./core/cluster", "TestAmountsThatWere", "1"},
	{"a placed pod doesn't count in facts", "core/cluster/apply.go", "	s.facts.addPod(n, p, 1)\n	s.objects.podAdded", "	s.objects.podAdded", "./core/engine", cached, "400"},
	{"a node that comes doesn't count for the lowest", "core/cluster/apply.go", "	s.facts.addNode(n, 1)\n	s.images", "	s.images", "./core/engine", cached, "1500"},
	{"changes of nodes' objects don't reach columns", "core/engine/column.go", "cluster.NodeUpdated, cluster.NodeRemoved", "cluster.NodeRemoved", "./core/engine", cached, "400"},
	{"a column doesn't bring the one that it follows up to date", "core/engine/column.go", "		c.leader.sync()\n", "		_ = c.leader\n", "./core/engine", "ManyNodes", "400"},
	{"an emptied column counts as filled", "core/engine/filled.go", "	c.built = false\n", "", "./core/engine", "ManyNodes", "100"},
	{"a column is emptied though others were used longer ago", "core/engine/filled.go", "cmp.Compare(a.used, b.used)", "cmp.Compare(b.used, a.used)", "./core/engine", "TestFilledColumns", "1"},
	{"what was rolled back isn't looked at again", "core/engine/column.go", "c.pending = append(c.pending, n)", "_ = n", "./core/engine", "PropertyRollback|PropertyCached", "1500"},
	{"a volume touches no node", "core/cluster/volumes.go", "return o.Spec.CSI == nil ||", "return false && o.Spec.CSI == nil &&", "./core/engine", "TestStorageReaches", "1"},
	{"a class touches no node", "core/cluster/storage_classes.go", "s.touchAll(touch)", "_ = touch", "./core/engine", "TestStorageReaches", "1"},
	{"spread doesn't hint at pods that come", "core/plugins/podtopologyspread/rule.go", "case cluster.PodAdded, cluster.PodRemoved:", "case cluster.PodRemoved:", "./core/engine", hint, "20000"},
	{"affinity doesn't hint at pods that come", "core/plugins/interpodaffinity/rule.go", "case cluster.PodAdded, cluster.PodRemoved:", "case cluster.PodRemoved:", "./core/engine", hint, "20000"},
	{"claims in use sign no pod again", "core/plugins/volumes/reclassify.go", "if len(c.Pod.Claims) > 0 {", "if len(c.Pod.Claims) > 99 {", "./core", "SharedClaim", "1"},
	{"when one pod puts its preemption off, others of its class aren't tried", "core/queue/waiting.go", "	w.state, w.diagnosis = probingPreempt, d // the class doesn't fit\n	q.probe(w)\n", "	w.state = waiting\n", "./core", "TestScripts", "1"},
	{"a limited wait for a place never ends", "core/lifecycle/reservation/asking.go", "if t.Now.Before(m.limits[uid]) {", "if true {", "./core/lifecycle/reservation", "PropertyPlaces", "400"},
	{"nodes are bought for pods that would preempt", "core/autoscaler/scaleup/scaleup.go", "if req.NotFor != nil {", "if false {", "./core/autoscaler/scaleup", "Script", "1"},
	{"nodes are bought in the place of others that are on their way out", "core/autoscaler/scaleup/scaleup.go", "b.recall(b.cover(b.runs(req.Pending)))\n	b.limits", "b.cover(b.runs(req.Pending))\n	b.limits", "./core/autoscaler/scaleup", "Script", "1"},
	{"more nodes stay than take pods", "core/autoscaler/scaleup/recall.go", "if recall.Pods == nil {", "if false {", "./core/autoscaler/scaleup", "Script", "1"},
	{"anybody has the room of a place on a usable node", "core/autoscaler/scaleup/cover.go", "left := b.fillPlaces(pending, b.usablePlace, b.fitsNow)", "left := pending", "./core/autoscaler/scaleup", "Script", "1"},
	{"a pod keeps no node but that of its place", "core/autoscaler/scaledown/pass.go", "			pod = pod.Instance(\"fits/\" + string(pod.UID))", "			continue", "./core/autoscaler/scaledown", "TheyFitOn", "1"},
	{"what a node lacks is told as it was", "core/engine/shortfalls.go", "if s.told.node == i {", "if false {", "./core/engine", cached, "400"},
	{"nobody is below anybody", "core/cluster/state.go", "		if p < priority {", "		if p < priority && false {", "./core/engine", cached, "400"},
	{"an attachment's volume touches no node", "core/cluster/volumes.go", "s.objects.attachmentsByVolume[o.Name]", "s.objects.attachmentsByVolume[\"\"]", "./core/engine", "TestStorageReaches", "1"},
	{"a refused pod stays reserved for", "core/lifecycle/binding/binding.go", "	m.unreserve(t, p)\n	m.assumed.takeBack(t.State, p)\n	p.state", "	m.assumed.takeBack(t.State, p)\n	p.state", "./core", "Permit|Reserve", "1"},
	{"a pod whose node is gone waits for permission on", "core/lifecycle/binding/permission.go", "t.State.NodeByName(w.p.node) == nil &&", "false &&", "./core", "WaitForPermission", "1"},
	{"a candidate's time isn't read back from its soft taint", "core/lifecycle/candidates/candidates.go", "since, by, _ := m.readBack(n.Name, now)", "since, by := now, \"\"", "./core/lifecycle/candidates", "Scripts/restart", "1"},
	{"a node that was needed meanwhile keeps its time", "core/lifecycle/candidates/candidates.go", "			delete(m.byName, name)\n			m.changed(name, false)\n", "", "./core/lifecycle/candidates", "Scripts/unneeded", "1"},
	{"a place is on no node", "core/lifecycle/reservation/reservation.go", "	p.Node = n.Name\n", "", "./core/lifecycle/reservation", "Property", "100"},
	{"a pod preempts though it has a place", "core/scheduler/postfilter.go", "if a.Reserved(a.pod.UID) {", "if false {", "./core", "Scripts/autoscale_places", "1"},
	{"a local volume leaves no trace", "core/cluster/pod_fields.go", " &&\n\t\t\ta.Eviction.LocalVolume == b.Eviction.LocalVolume", "", "./core/cluster", "TestSamePod", "1"},
	{"nobody knows how old a system pod is", "core/cluster/pod_fields.go", "\t\t\tto.CreationTimestamp = from.CreationTimestamp\n", "", "./core/autoscaler/drainability", "TestSystem", "1"},
	{"nodes on their way out count for the cluster's minimum", "core/autoscaler/scaledown/minimums.go", "Leaving(n.NodeInfo) || virtual", "virtual", "./core/autoscaler/scaledown", "TestMinimums", "1"},
	{"homes aren't confirmed when all have moved", "core/autoscaler/scaledown/pass.go", "for p.settle(); p.wholeGroups(); {", "for p.wholeGroups() {", "./core/autoscaler/scaledown", "PropertyCandidates", "400"},
	{"pods that were lifted off a changed node stay there", "core/autoscaler/scaledown/follow.go", "h.at = s.find(h.pod, h.engine, h.class)", "h.at = s.world.NodeByName(x.node).Index\n\ts.put(h.pod, h.at)", "./core/autoscaler/scaledown", "PropertyCandidates", "400"},
	{"candidates of one pass take from no budget", "core/autoscaler/scaledown/pass.go", "		p.budgets.take(c.uses)\n		p.minimums.Take(n)\n	}\n}", "		p.minimums.Take(n)\n	}\n}", "./core/autoscaler/scaledown", "PropertyCandidates", "1500"},
	{"nodes that a pass had no time for come last again", "core/autoscaler/scaledown/pass.go", "cmp.Compare(a.skipped-1, b.skipped-1), // 0 becomes the largest", "", "./core/autoscaler/scaledown", "PropertyNoCandidate", "100"},
	{"a candidate in the memory of another has its pods, too", "core/autoscaler/scaledown/simulator.go", "pods: c.pods[:0]", "pods: c.pods", "./core/autoscaler/scaledown", "PropertyCandidates", "400"},
	{"nodes go though a displaced pod has no home", "core/autoscaler/scaledown/pass.go", "homeless != \"\" {", "homeless != \"\" && false {", "./core/autoscaler/scaledown", "TestDisplacedPods", "1"},
	{"a displaced pod has no home while candidates have its room", "core/autoscaler/scaledown/pass.go", "		if len(p.candidates) == 0 {\n			return p.down", "		if true {\n			return p.down", "./core/autoscaler/scaledown", "TestDisplacedPods", "1"},
	{"a pod that leaves needs no second place", "core/autoscaler/scaledown/pass.go", "			pod = pod.Instance(\"displaced/\" + string(pod.UID))", "			continue", "./core/autoscaler/scaledown", "TestAPodThatLeaves", "1"},
	{"no hint is followed", "core/autoscaler/scaledown/simulator.go", "ok := s.hints[p.UID]; ok {", "ok := s.hints[p.UID]; ok && false {", "./core/autoscaler/scaledown", "TestPodsKeepTheirDestinations", "1"},
	{"a hint is followed to a node that is full", "core/autoscaler/scaledown/simulator.go", "n != nil && e.FitsOn(class, n) {", "n != nil {", "./core/autoscaler/scaledown", "TestPodsKeepTheirDestinations", "1"},
	{"an undone candidate leaves no hints", "core/autoscaler/scaledown/simulator.go", "		s.hints[h.pod.UID] = s.world.Node(h.at).Name\n		s.take", "		s.take", "./core/autoscaler/scaledown", "TestPodsKeepTheirDestinations", "1"},
	{"a stuck node is simulated in each pass", "core/autoscaler/scaledown/pass.go", "p.req.Now.Sub(k.Since) < p.down.Rules.RecheckAfter", "p.req.Now.Sub(k.Since) < 0", "./core/autoscaler/scaledown", "TestNodesThatCannotGo", "1"},
	{"a stuck node is never simulated again", "core/autoscaler/scaledown/pass.go", "p.req.Now.Sub(k.Since) < p.down.Rules.RecheckAfter", "p.req.Now.Sub(k.Since) >= 0", "./core/autoscaler/scaledown", "TestNodesThatCannotGo", "1"},
	{"a part of an atomic group goes", "core/autoscaler/scaledown/pass.go", "for p.settle(); p.wholeGroups(); {", "for p.settle(); false; {", "./core/autoscaler/scaledown", "TestAnAtomicGroup", "1"},
	{"scale-down is throttled while due nodes may go", "core/explain_nodes.go", "candidates(\"\") > 0:", "false:", "./core", "TestScaleDownIsThrottled", "1"},
	{"a preemptor counts on the room of another", "core/engine/preempt.go", "		if f.code(n) == framework.OK {\n			continue // it may stay", "		if f.reject(n).code == framework.OK {\n			continue // it may stay", "./core", "TestScripts/scheduling_preemption_one_node", "1"},
	{"more homes are kept than pods are lacking", "core/lifecycle/homes/homes.go", "missing == 0 || lacks[w] > missing && w.Kind != cluster.StatefulSet", "missing == 0", "./core/lifecycle/homes", "TestScripts/capped", "1"},
	{"another leader's launches count", "core/lifecycle/launching/nodes.go", "		n.noPod = false\n		if n.state", "		if n.state", "./core/lifecycle/launching", "TestScripts/stages", "1"},
	{"a DaemonSet's pod ends a launch", "core/lifecycle/launching/nodes.go", "if n == nil || pod.Daemon() {", "if n == nil {", "./core/lifecycle/launching", "TestScripts/stages", "1"},
	{"nobody knows that pods became ready", "core/autoscaler/scaledown/follow.go", "s.byNode[at].recount = true", "_ = at", "./core/autoscaler/scaledown", "TestPodsThatAreNotReady", "1"},
	{"a refused eviction counts as done", "core/lifecycle/draining/draining.go", "case in.Err == nil && !p.courtesy && now != nil:", "case !p.courtesy && now != nil:", "./core/lifecycle/nodedeletion", "TestScripts/refused", "1"},
	{"a node stays that a pod may have left", "core/lifecycle/draining/draining.go", "return p.stage == asked && !p.courtesy", "return false", "./core/lifecycle/nodedeletion", "TestScripts/recalled", "1"},
	{"a node stays whose eviction may have been carried out", "core/lifecycle/draining/draining.go", "d.begun = d.begun || !in.Refused", "_ = in.Refused", "./core/lifecycle/nodedeletion", "TestScripts/recalled", "1"},
	{"a node stays whose pod's successor is being made", "core/lifecycle/draining/surge.go", "t.Now.Add(d.cfg.MaxEviction), true", "t.Now.Add(d.cfg.MaxEviction), d.begun", "./core/lifecycle/nodedeletion", "TestScripts/recalled", "1"},
	{"a drained node stays", "core/lifecycle/nodedeletion/recall.go", "return !d.drains()", "return true", "./core/lifecycle/nodedeletion", "TestScripts/recalled", "1"},
	{"a part of an atomic group stays", "core/lifecycle/nodedeletion/recall.go", "case begun[d.group] || ", "case ", "./core/lifecycle/nodedeletion", "TestScripts/recalled", "1"},
	{"the outcome of a taint ends its removal", "core/lifecycle/nodedeletion/nodedeletion.go", "case d.stays() && in.Remove:", "case d.stays():", "./core/lifecycle/nodedeletion", "TestScripts/late_taint", "1"},
	{"a node that stays is left unschedulable", "core/step/taint.go", "		if cordoned {\n			n.Spec.Unschedulable = false", "		if cordoned {\n			_ = n", "./core/lifecycle/nodedeletion", "Property", "400"},
	{"somebody else's taint is taken over", "core/lifecycle/nodedeletion/marking.go", "if i < 0 || !noted {", "if i < 0 || !noted && false {", "./core/lifecycle/nodedeletion", "Property", "400"},
	{"a node is deleted under a pod that has slipped in", "core/lifecycle/nodedeletion/looks.go", "!expected(p.UID) && !m.ignores(t, p) {", "!expected(p.UID) && false {", "./core/lifecycle/nodedeletion", "TestScripts/slipped_in", "1"},
	{"a node takes pods while the provider may still be deleting it", "core/lifecycle/nodedeletion/provider.go", ">= lingerTime:", ">= 0:", "./core/lifecycle/nodedeletion", "TestScripts/unanswered|WithoutAnAnswer", "100"},
	{"a refusal takes back what a call without an answer may still do", "core/lifecycle/nodedeletion/provider.go", "if s.unanswered > 0 {", "if false {", "./core/lifecycle/nodedeletion", "TestScripts/unanswered", "1"},
	{"orders that may still be carried out take no room below the maximum", "core/lifecycle/nodegroups/nodegroups.go", " - g.doubt.mayCome()", "", "./core/lifecycle/nodegroups", "TestScripts/unanswered", "1"},
	{"a deleted node counts as being removed while the API shows it", "core/lifecycle/nodedeletion/begin.go", "_, done := d.state.(deleted); !done", "_, done := d.state.(deleted); !done || true", "./core/lifecycle/nodedeletion", "TestScripts/lingering", "1"},
	{"a node goes though it has moved to another group", "core/lifecycle/nodedeletion/looks.go", "n.Group != d.group {", "false {", "./core/lifecycle/nodedeletion", "TestScripts/moved", "1"},
	{"instances that came don't count for those that were ordered first", "core/lifecycle/nodegroups/missing.go", "	q.forget(arrived)\n", "", "./core/lifecycle/nodegroups", "TestScripts/missing_churn", "1"},
	{"a preemption ends with the first answer", "edge/observe/metrics_preemption.go", "if x.calls--; x.calls > 0 {", "if x.calls--; false {", "./edge/observe", "TestMetricsOfPreemptions", "1"},
	{"a failed bind keeps its volumes", "core/lifecycle/binding/binding.go", "	m.assumed.takeBack(t.State, p)\n	p.state, p.pod", "	p.state, p.pod", "./core", "VolumeIsTaken", "1"},
}
