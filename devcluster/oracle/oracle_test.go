package oracle_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/devcluster/oracle"
	"github.com/berthproject/berth/internal/testkit"
)

// random draws a cluster.
func random(t *rapid.T) *oracle.Cluster {
	c := &oracle.Cluster{}
	names := testkit.Names("n", 1+testkit.Uniform(t, 8, "nodes"))
	for _, name := range names {
		n := testkit.RandomNode(t, name)
		if testkit.Uniform(t, 2, "roomy") == 1 {
			n.Status.Allocatable[v1.ResourceCPU], n.Status.Allocatable[v1.ResourceMemory] = resource.MustParse("32"), resource.MustParse("64Gi")
		}
		// Random nodes are cordoned more often than is good for their scores.
		n.Spec.Unschedulable = n.Spec.Unschedulable && rapid.IntRange(0, 3).Draw(t, "cordoned") == 3
		c.Nodes = append(c.Nodes, n)
	}
	ports := map[string]bool{}
	for i := range testkit.Uniform(t, 20, "pods") {
		p := testkit.RandomPod(t, fmt.Sprint("p", i))
		p.Spec.NodeName = rapid.SampledFrom(names).Draw(t, "on")
		// Starts differ: of equally important pods kube-scheduler spares any.
		at := metav1.NewTime(time.Unix(int64(testkit.Uniform(t, 100, "start")*100+i), 0))
		p.Status.StartTime = &at
		// A port that two pods of a node had, which can't be, kube-scheduler takes
		// for free when one of them goes.
		if port := p.Spec.Containers[0].Ports; len(port) > 0 && port[0].HostPort > 0 {
			if key := fmt.Sprint(p.Spec.NodeName, port[0].HostPort); ports[key] {
				p.Spec.Containers[0].Ports = nil
			} else {
				ports[key] = true
			}
		}
		c.Pods = append(c.Pods, p)
	}
	for i := range testkit.Uniform(t, 5, "nominated") {
		p := testkit.RandomPod(t, fmt.Sprint("nominee", i))
		p.DeletionTimestamp = nil
		// kube-scheduler forgets whom a nominated pod keeps away, or that it has a
		// claim, where it is the only one (docs/compatibility.md).
		if p.Spec.Affinity != nil {
			p.Spec.Affinity.PodAntiAffinity = nil
		}
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil })
		p.Status.NominatedNodeName = rapid.SampledFrom(names).Draw(t, "to")
		c.Nominated = append(c.Nominated, p)
	}
	for range testkit.Uniform(t, 4, "budgets") {
		if b, gone := testkit.RandomBudget(t); !gone && !slices.ContainsFunc(c.Objects, func(o metav1.Object) bool { return o.GetNamespace() == b.Namespace && o.GetName() == b.Name }) {
			c.Objects = append(c.Objects, b)
		}
	}
	for range testkit.Uniform(t, 4, "workloads") {
		c.Workloads = append(c.Workloads, object(testkit.RandomWorkload(t)))
	}
	for _, name := range []string{"default", "other"} {
		if n := testkit.RandomNamespace(t); rapid.IntRange(0, 3).Draw(t, "exists") > 0 {
			n.Name = name
			c.Objects = append(c.Objects, n)
		}
	}
	if testkit.Uniform(t, 3, "storage") > 0 {
		c.Objects = append(c.Objects, testkit.RandomStorage(t)...)
	}
	return c
}

// incoming draws the pod to be placed.
func incoming(t *rapid.T, name string) *v1.Pod {
	p := testkit.RandomPod(t, name)
	p.DeletionTimestamp = nil
	switch testkit.Uniform(t, 8, "focus") { // what only few pods have else
	case 0:
		testkit.AddTerms(t, p)
	case 1:
		testkit.AddConstraints(t, p)
	case 2, 3:
		testkit.AddVolumes(t, p)
	}
	if rapid.IntRange(0, 9).Draw(t, "named") == 9 {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n0", "n1", "n2", "nowhere"}), 1, 2, rapid.ID[string]).Draw(t, "names")
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &v1.Affinity{}
		}
		p.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: names}}},
		}}}
	}
	return p
}

func object(w *cluster.Workload) runtime.Object {
	meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	if w.Kind == cluster.Service {
		return &v1.Service{ObjectMeta: meta, Spec: v1.ServiceSpec{Selector: w.Set}}
	}
	// The selectors of random ReplicaSets are of one label, named as they are.
	return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.Name}}}}
}

// berth puts the cluster into a state of Berth's.
func berth(c *oracle.Cluster, o plugins.Options) (*cluster.State, *engine.Engine) {
	schema := cluster.NewSchema()
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
		s.SetObject(o)
	}
	for _, p := range c.Nominated {
		s.Nominate(schema.ParsePod(p), p.Status.NominatedNodeName)
	}
	return s, testkit.Must(engine.New(s, plugins.Default(schema, o), engine.Options{}))
}

// TestPropertyOracle compares Berth's verdicts with those of kube-scheduler's
// plugins: the same feasible nodes, for the others the same plugin and words,
// the same raw, normalised and total scores.
func TestPropertyOracle(t *testing.T) {
	judge, err := oracle.New(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	t.Cleanup(func() { reached(t, seen) })
	rapid.Check(t, func(rt *rapid.T) { compare(rt, judge, plugins.Options{}, seen) })
}

// compare draws a cluster and a few pods, and has both judge them.
func compare(t *rapid.T, judge *oracle.Judge, o plugins.Options, seen map[string]int) {
	c := random(t)
	if err := judge.Set(c); err != nil {
		t.Fatal(err)
	}
	s, e := berth(c, o)
	for i := range 3 {
		pod := incoming(t, fmt.Sprint("new", i))
		want, err := judge.Judge(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		got := verdicts(s, e, pod)
		if miscounted(pod, c.Nominated) {
			continue
		}
		uncounted(c, pod, want, got)
		problem := disagree(c, want, got)
		// Of two volumes that name one claim, kube-scheduler takes the one that a
		// map gives it first. Where it contradicts itself, any answer of its is good.
		for again := 0; problem != "" && again < 40; again++ {
			if err := judge.Set(c); err != nil {
				t.Fatal(err)
			}
			if other, err := judge.Judge(t.Context(), pod); err != nil {
				t.Fatal(err)
			} else if uncounted(c, pod, other); disagree(c, other, got) == "" {
				want, problem = other, ""
				seen["kube-scheduler contradicts itself"]++
			}
		}
		if problem != "" {
			t.Fatalf("%sas a case for testdata/cases: %s\npod %s: %s", show(c, pod), record(c, pod, want), pod.Name, problem)
		}
		for _, n := range c.Nodes {
			count(seen, want.Nodes[n.Name])
		}
		if want.Chosen != "" {
			seen["preempts"]++
		}
	}
}

// miscounted tells whether kube-scheduler loses count when it tries how things
// would be with or without some of the pods (docs/compatibility.md): it
// takes claims of one name for one, whatever their namespace, and one that
// several use for free when one of them goes; a terminating
// pod, which doesn't count for hard spread constraints, for one that did; and all
// pods for selected by an empty selector, which otherwise selects none.
func miscounted(pod *v1.Pod, others []*v1.Pod) bool {
	hard, empty := false, false
	for _, x := range pod.Spec.TopologySpreadConstraints {
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

func claimsOf(p *v1.Pod) (out []string) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

// uncounted leaves preemption out of outcomes where kube-scheduler loses count.
func uncounted(c *oracle.Cluster, pod *v1.Pod, outcomes ...*oracle.Outcome) {
	if !miscounted(pod, c.Pods) {
		return
	}
	for _, o := range outcomes {
		o.Victims, o.Chosen = nil, ""
		o.Message, _, _ = strings.Cut(o.Message, " preemption: ")
	}
}

// disagree says where two outcomes differ, "" for nowhere.
func disagree(c *oracle.Cluster, want, got *oracle.Outcome) string {
	for _, n := range c.Nodes {
		if problem := differ(want.Nodes[n.Name], got.Nodes[n.Name]); problem != "" {
			return fmt.Sprintf("on node %s: %s", n.Name, problem)
		}
	}
	if !maps.EqualFunc(got.Victims, want.Victims, func(a, b oracle.Victims) bool {
		return a.Violations == b.Violations && slices.Equal(a.Pods, b.Pods)
	}) || got.Chosen != want.Chosen {
		return fmt.Sprintf("preemption takes %q of %v, in kube-scheduler %q of %v", got.Chosen, got.Victims, want.Chosen, want.Victims)
	}
	if got.Message != want.Message {
		return fmt.Sprintf("it is told\n%s\nand by kube-scheduler\n%s", got.Message, want.Message)
	}
	return ""
}

// verdicts are Berth's, in the form of kube-scheduler's.
func verdicts(s *cluster.State, e *engine.Engine, pod *v1.Pod) *oracle.Outcome {
	class := e.Class(s.Schema.ParsePod(pod))
	out := &oracle.Outcome{Nodes: map[string]oracle.Verdict{}}
	scores := e.Scores(class)
	for _, v := range e.Answers(class) {
		got := oracle.Verdict{OK: v.OK, Total: v.Score, Scores: map[string]int64{}, Raw: map[string]int64{}}
		for _, x := range scores[v.Node] {
			got.Scores[x.Plugin], got.Raw[x.Plugin] = x.Score, x.Raw
		}
		if why := e.Explain(class, v.Node); why != nil {
			got.Plugin, got.Messages = why.Plugin, why.Messages
		}
		out.Nodes[s.Node(v.Node).Name] = got
	}
	if _, ok := e.Best(class); ok {
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

// count takes note of what a verdict has reached.
func count(seen map[string]int, v oracle.Verdict) {
	if !v.OK {
		seen["rejected by "+v.Plugin]++
		return
	}
	seen["feasible"]++
	for name, score := range v.Scores {
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

// reached shows what the random cases have reached, and when they are many,
// misses what they must.
func reached(t *testing.T, seen map[string]int) {
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%7d %s", seen[k], k)
	}
	for _, k := range []string{"feasible", "preempts", "rejected by NodeResourcesFit", "rejected by TaintToleration", "rejected by NodeAffinity", "rejected by NodePorts",
		"rejected by NodeUnschedulable", "rejected by InterPodAffinity", "PodTopologySpread scores between", "TaintToleration scores hundreds",
		"NodeAffinity scores hundreds", "NodeResourcesFit scores between", "NodeResourcesBalancedAllocation scores between"} {
		if seen[k] == 0 && seen["feasible"] > 5000 && !t.Failed() {
			t.Errorf("no case has reached: %s", k)
		}
	}
}

func differ(want, got oracle.Verdict) string {
	switch {
	case want.OK != got.OK:
		return fmt.Sprintf("feasible is %v (%s %v), kube-scheduler says %v (%s %v)", got.OK, got.Plugin, got.Messages, want.OK, want.Plugin, want.Messages)
	case !want.OK && (want.Plugin != got.Plugin || !slices.Equal(sorted(want.Messages), sorted(got.Messages))):
		return fmt.Sprintf("rejected by %s %v, in kube-scheduler by %s %v", got.Plugin, got.Messages, want.Plugin, want.Messages)
	case want.OK && want.Total != got.Total:
		return fmt.Sprintf("the score is %d %v, kube-scheduler's %d %v", got.Total, got.Scores, want.Total, want.Scores)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Scores)) {
		if want.Scores[name] != got.Scores[name] || want.Raw[name] != got.Raw[name] {
			return fmt.Sprintf("%s scores %d, raw %d; in kube-scheduler %d, raw %d", name, got.Scores[name], got.Raw[name], want.Scores[name], want.Raw[name])
		}
	}
	return ""
}

// sorted is for messages: kube-scheduler tells scalar resources in the order of
// a map.
func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }

// show writes a case out for a person.
func show(c *oracle.Cluster, pod *v1.Pod) string {
	var b strings.Builder
	put := func(what string, o any) {
		raw, err := yaml.Marshal(o)
		if err != nil {
			raw = []byte(err.Error())
		}
		fmt.Fprintf(&b, "--- %s\n%s", what, raw)
	}
	put("pod", pod)
	for _, n := range c.Nodes {
		put("node", map[string]any{"name": n.Name, "labels": n.Labels, "taints": n.Spec.Taints, "unschedulable": n.Spec.Unschedulable, "allocatable": n.Status.Allocatable})
	}
	for _, p := range c.Pods {
		put("existing", map[string]any{"name": p.Name, "namespace": p.Namespace, "labels": p.Labels, "node": p.Spec.NodeName, "affinity": p.Spec.Affinity, "deleting": p.DeletionTimestamp != nil,
			"volumes": p.Spec.Volumes, "priority": p.Spec.Priority, "start": p.Status.StartTime, "requests": p.Spec.Containers[0].Resources.Requests, "ports": p.Spec.Containers[0].Ports})
	}
	for _, p := range c.Nominated {
		put("nominated", p)
	}
	for _, w := range c.Workloads {
		put("workload", w)
	}
	for _, o := range c.Objects {
		put("object", o)
	}
	return b.String()
}

// record writes a mismatch as a table for testdata/cases, but for its workloads,
// with kube-scheduler's verdict as what is wanted, and returns where. While rapid shrinks, a smaller
// one takes the place of a larger.
func record(c *oracle.Cluster, pod *v1.Pod, want *oracle.Outcome) string {
	x := caseOf{Name: "found by random search"}
	for _, n := range c.Nodes {
		k := caseNode{Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable,
			Images: n.Status.Images, Features: n.Status.DeclaredFeatures, Allocatable: map[string]string{}}
		for name, q := range n.Status.Allocatable {
			k.Allocatable[string(name)] = q.String()
		}
		x.Nodes = append(x.Nodes, k)
		if want.Nodes[n.Name].OK {
			x.Want.Feasible = append(x.Want.Feasible, n.Name)
		}
	}
	short := func(p *v1.Pod) casePod {
		return casePod{Namespace: p.Namespace, Labels: p.Labels, Terminating: p.DeletionTimestamp != nil, Spec: p.Spec}
	}
	for _, p := range c.Pods {
		x.Pods = append(x.Pods, short(p))
	}
	x.Pod = short(pod)
	x.Want.Message = want.Message
	for _, o := range c.Objects {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err.Error()
		}
		raw["kind"] = strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."), "*storagev1.")
		x.Objects = append(x.Objects, raw)
	}
	text, err := yaml.Marshal(caseFile{Cases: []caseOf{x}})
	path := filepath.Join(os.TempDir(), "oracle-mismatch.yaml")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return err.Error()
	}
	return path
}
