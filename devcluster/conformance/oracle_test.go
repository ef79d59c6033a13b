package conformance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/core/plugins/volumebinding"
	"github.com/berthproject/berth/devcluster/oracle"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file compares Berth with kube-scheduler on random clusters. What must hold: for
// each pod and node the same answer, in score, raw score and words; where no node takes
// the pod, the same victims and the same message. What is left out, and why, is said by
// miscounted and in docs/compatibility.md. Cases that people wrote are in cases_test.go,
// configurations in config_test.go.

// stateOf returns a cluster as Berth's state under the rules of a version, with an engine of one
// profile on it.
func stateOf(v compat.Version, c *oracle.Cluster, o plugins.Options) (*cluster.State, *engine.Engine) {
	schema := cluster.SchemaFor(v)
	s := cluster.New(schema)
	for _, n := range c.Nodes {
		s.SetNode(schema.ParseNode(n, ""))
	}
	for _, p := range c.Pods {
		s.Place(schema.ParsePod(p), p.Spec.NodeName)
	}
	for _, w := range c.Workloads {
		s.SetWorkload(cluster.WorkloadOf(w))
	}
	for _, o := range c.Objects {
		if claim, ok := o.(*resourcev1.ResourceClaim); ok && cluster.BindingTimedOut(claim, time.Now(), 10*time.Minute) {
			claim = claim.DeepCopy()
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, cluster.AnnBindingTimedOut, "true")
			o = claim
		}
		s.SetObject(o)
	}
	for _, p := range c.Nominated {
		s.Nominate(schema.ParsePod(p), p.Status.NominatedNodeName)
	}
	return s, testkit.Must(engine.New(s, plugins.Default(schema, o), engine.Options{}))
}

// TestPropertyOracle: Berth's answers equal those of kube-scheduler's plugins in the
// default profile. The same nodes are feasible, others are rejected by the same plugin
// in the same words, and raw, normalised and total scores are the same.
func TestPropertyOracle(t *testing.T) {
	eachVersion(t, func(t *testing.T, v compat.Version) {
		upstream, err := peerOf(t, v, "")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		t.Cleanup(func() { reached(t, v, seen) })
		rapid.Check(t, func(rt *rapid.T) { compare(rt, upstream, plugins.Options{}, seen) })
	})
}

// compare draws a cluster and three pods, and compares the answers about each. seen
// counts what the cases have reached, for reached.
func compare(t *rapid.T, upstream peer, o plugins.Options, seen map[string]int) {
	c := randomCluster(t)
	if !upstream.devices {
		dropDevices(c)
	}
	if err := upstream.Set(c); err != nil {
		t.Fatal(err)
	}
	s, e := stateOf(upstream.version, c, o)
	for i := range 3 {
		pod := incoming(t, fmt.Sprint("new", i))
		if hasDevices(c) {
			wantDevices(t, pod)
		}
		want, err := upstream.Evaluate(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		got := berthOutcome(s, e, pod)
		if miscounted(o.Spread.Constraints, pod, c.Nominated) {
			continue
		}
		dropMiscountedPreemption(o.Spread.Constraints, c, pod, want, got)
		problem := difference(c, want, got)
		// Of two volumes that name one claim, kube-scheduler takes the one that comes
		// first in a map. Where its answers vary, Berth has to equal one of them.
		for again := 0; problem != "" && again < 40; again++ {
			if err := upstream.Set(c); err != nil {
				t.Fatal(err)
			}
			if other, err := upstream.Evaluate(t.Context(), pod); err != nil {
				t.Fatal(err)
			} else if dropMiscountedPreemption(o.Spread.Constraints, c, pod, other); difference(c, other, got) == "" {
				want, problem = other, ""
				seen["kube-scheduler's answers vary"]++
			}
		}
		if problem != "" {
			t.Fatalf("%sas a case for testdata/cases: %s\npod %s: %s", show(c, pod), record(c, pod, want), pod.Name, problem)
		}
		for _, n := range c.Nodes {
			count(seen, want.Nodes[n.Name])
			if want.Nodes[n.Name].Scores[volumebinding.Name] > 0 {
				countVolumes(seen, s, pod, n.Name)
			}
		}
		if want.Chosen != "" {
			seen["preempts"]++
		}
	}
}

// dropDevices takes the devices out of a cluster, and the claims for them. Berth has the allocator of
// 1.37 for both versions, and that of 1.36 differs from it: in pools with counters, for one.
func dropDevices(c *oracle.Cluster) {
	c.Objects = slices.DeleteFunc(c.Objects, func(o metav1.Object) bool {
		switch o.(type) {
		case *resourcev1.ResourceSlice, *resourcev1.ResourceClaim, *resourcev1.DeviceClass, *resourcev1.DeviceTaintRule:
			return true
		}
		return false
	})
}

// miscounted reports whether kube-scheduler's counts for a pod go wrong when it simulates
// adding or removing some of the others (AddPod and RemovePod of its PreFilter
// extensions, docs/compatibility.md). There it
//   - takes claims of one name in two namespaces for one claim;
//   - takes a claim that several pods use for free when one of them is removed;
//   - counts a terminating pod for hard spread constraints, which PreFilter doesn't;
//   - takes all pods for selected by an empty selector, which selects none in PreFilter.
//
// The constraints are the pod's own or, of a pod without any, the configuration's defaults.
func miscounted(defaults []v1.TopologySpreadConstraint, pod *v1.Pod, others []*v1.Pod) bool {
	hard, empty := false, false
	constraints := pod.Spec.TopologySpreadConstraints
	if len(constraints) == 0 {
		constraints = defaults
	}
	for _, x := range constraints {
		if x.WhenUnsatisfiable == v1.DoNotSchedule {
			hard = true
			empty = empty || x.LabelSelector != nil && len(x.LabelSelector.MatchLabels)+len(x.LabelSelector.MatchExpressions) == 0
		}
	}
	claims, uses := claimsOf(pod), 0
	for _, p := range others {
		for _, name := range claimsOf(p) {
			if slices.Contains(claims, name) {
				uses++
			}
		}
	}
	return uses > 1 || empty && len(others) > 0 || slices.ContainsFunc(others, func(p *v1.Pod) bool {
		return hard && p.DeletionTimestamp != nil || p.Namespace != pod.Namespace && slices.ContainsFunc(claimsOf(p), func(name string) bool { return slices.Contains(claims, name) })
	})
}

// claimsOf returns the names of the claims that a pod uses.
func claimsOf(p *v1.Pod) (out []string) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

// dropMiscountedPreemption takes preemption out of outcomes where kube-scheduler's
// simulation of it counts wrongly.
func dropMiscountedPreemption(defaults []v1.TopologySpreadConstraint, c *oracle.Cluster, pod *v1.Pod, outcomes ...*oracle.Outcome) {
	if !miscounted(defaults, pod, c.Pods) {
		return
	}
	for _, o := range outcomes {
		o.Victims, o.Chosen = nil, ""
		o.Message, _, _ = strings.Cut(o.Message, " preemption: ")
	}
}

// berthOutcome returns what Berth's engine answers about a pod, in the oracle's form.
func berthOutcome(s *cluster.State, e *engine.Engine, pod *v1.Pod) *oracle.Outcome {
	class := e.Class(s.Schema.ParsePod(pod))
	out := &oracle.Outcome{Held: oracle.Answer{OK: true}, Nodes: map[string]oracle.Answer{}}
	for _, g := range e.Profile().Gates {
		if why := g.PreEnqueue(class.Pod(), s); why != nil {
			out.Held = oracle.Answer{Plugin: why.Plugin, Messages: why.Messages}
			break
		}
	}
	scores := e.Scores(class)
	for _, a := range e.Answers(class) {
		got := oracle.Answer{OK: a.OK, Total: a.Score, Scores: map[string]int64{}, Raw: map[string]int64{}}
		for _, x := range scores[a.Node] {
			got.Scores[x.Plugin], got.Raw[x.Plugin] = x.Score, x.Raw
		}
		if why := e.Explain(class, a.Node); why != nil {
			got.Plugin, got.Messages = why.Plugin, why.Messages
		}
		if a.OK {
			got.Allocations = berthAllocations(s, class.Pod(), s.Node(a.Node))
		}
		out.Nodes[s.Node(a.Node).Name] = got
	}
	out.Error = e.Failure(class)
	if _, ok := e.Best(class); ok || out.Error != "" {
		return out
	}
	out.Victims = map[string]oracle.Victims{}
	for _, k := range e.Candidates(class) {
		v := oracle.Victims{Violations: k.Violations}
		for _, p := range k.Pods {
			v.Pods = append(v.Pods, p.Object.Name)
		}
		out.Victims[s.Node(k.Node).Name] = v
	}
	d := e.Diagnose(class)
	if best, ok := e.Preempt(class); ok {
		out.Chosen = s.Node(best.Node).Name
	} else {
		d = d.WithPreemption(engine.Preemption{RuledOut: true, Message: e.PreemptionMessage(class)})
	}
	out.Message = d.Message()
	return out
}

// berthAllocations returns what the claims of a pod would get on a node that takes it.
func berthAllocations(s *cluster.State, pod *cluster.Pod, n *cluster.Node) (out []oracle.Allocation) {
	mark, head := s.Mark(), s.Head()
	defer s.Rollback(mark)
	dynamicresources.New(dynamicresources.DefaultSteps).Assume(pod, n, s)
	changes, _ := s.Since(head)
	for _, x := range changes {
		if x.Op != cluster.ObjectSet && x.Op != cluster.ObjectRenewed {
			continue
		}
		c, ok := x.Object.New.(*resourcev1.ResourceClaim)
		if old, had := x.Object.Old.(*resourcev1.ResourceClaim); !ok || had && old.Status.Allocation != nil {
			continue
		}
		a := oracle.Allocation{Claim: c.Name, Result: *c.Status.Allocation.DeepCopy()}
		if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "" {
			a.Claim, a.Requests = "<extended-resources>", c.Spec.Devices.Requests
		}
		for i := range a.Result.Devices.Results {
			a.Result.Devices.Results[i].ShareID = nil
		}
		out = append(out, a)
	}
	return out
}

// count counts what an answer has reached: a rejection by some plugin, or a score of
// some size.
func count(seen map[string]int, a oracle.Answer) {
	if !a.OK {
		seen["rejected by "+a.Plugin]++
		if slices.ContainsFunc(a.Messages, func(m string) bool { return strings.HasSuffix(m, "CSI driver is not installed on the node") }) {
			seen["rejected for want of a CSI driver"]++
		}
		return
	}
	seen["feasible"]++
	for name, score := range a.Scores {
		switch {
		case score == 0:
			seen[name+" scores 0"]++
		case score%100 == 0:
			seen[name+" scores hundreds"]++
		default:
			seen[name+" scores between"]++
		}
	}
}

// countVolumes counts where the volumes of a pod would come from on a node that has a score for them.
func countVolumes(seen map[string]int, s *cluster.State, pod *v1.Pod, node string) {
	mark, head := s.Mark(), s.Head()
	volumebinding.Plugin{}.Assume(s.Schema.ParsePod(pod), s.NodeByName(node), s)
	kinds := map[cluster.ObjectKind]bool{}
	classes := map[string]bool{}
	changes, _ := s.Since(head)
	for _, x := range changes {
		if x.Op == cluster.ObjectSet {
			kinds[cluster.KindOf(x.Object.New)] = true
			if claim, ok := x.Object.New.(*v1.PersistentVolumeClaim); ok {
				classes[cluster.ClaimClass(claim)] = true
			}
		}
	}
	s.Rollback(mark)
	switch {
	case kinds[cluster.VolumeKind] && kinds[cluster.ClaimKind]:
		seen["scored for volumes, with others to provision"]++
	case kinds[cluster.VolumeKind]:
		seen["scored for volumes"]++
	case len(classes) > 1:
		seen["scored for capacities of several classes"]++
	case kinds[cluster.ClaimKind]:
		seen["scored for a capacity"]++
	}
}

// reached logs what the random cases have reached. When there were many, it fails the
// test if they haven't reached what they must.
func reached(t *testing.T, v compat.Version, seen map[string]int) {
	logSeen(t, seen)
	must := []string{"feasible", "preempts", "rejected by NodeResourcesFit", "rejected by TaintToleration", "rejected by NodeAffinity", "rejected by NodePorts",
		"rejected by NodeUnschedulable", "rejected by InterPodAffinity", "PodTopologySpread scores between", "TaintToleration scores hundreds",
		"NodeAffinity scores hundreds", "NodeResourcesFit scores between", "NodeResourcesBalancedAllocation scores between"}
	if v >= compat.V37 {
		must = append(must, "VolumeBinding scores between", "scored for volumes", "scored for volumes, with others to provision", "scored for a capacity",
			"scored for capacities of several classes", "rejected for want of a CSI driver")
	}
	for _, k := range must {
		if seen[k] == 0 && seen["feasible"] > 5000 && !t.Failed() {
			t.Errorf("no case has reached: %s", k)
		}
	}
}

// logSeen logs what random cases have reached, and how often.
func logSeen(t *testing.T, seen map[string]int) {
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%7d %s", seen[k], k)
	}
}
