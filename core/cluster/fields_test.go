package cluster_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/engine/reference"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// The invariants of fields.go, over clusters whose objects were changed
// anywhere.

// removalRules let every rule of evictions be asked: those behind others are with less.
var removalRules = []autoscaler.RemovalRules{
	{},
	{SkipLocalStorage: true},
	{SkipSystemPods: true, SystemPodTimeout: 250 * time.Second},
	{SkipCustomControllerPods: true},
}

// answers is all that Berth makes of a cluster, for some pods that want to go
// there: classes' signatures aside, which only mean something within a state.
func answers(s *cluster.State, subjects []*v1.Pod) string {
	profile := plugins.Default(s.Schema, plugins.Options{})
	e, err := engine.New(s, profile, engine.Options{})
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	for _, o := range subjects {
		p := s.Schema.ParsePod(o)
		c := e.Class(p)
		best, ok := e.Best(c)
		fmt.Fprintln(&b, p.Name(), reference.Answers(s, profile, p), reference.Preempt(s, profile, p), best, ok)
		if !ok {
			fmt.Fprintln(&b, e.Diagnose(c).Message())
		}
	}
	s.Nodes(func(n *cluster.Node) {
		fmt.Fprintln(&b, n.Name, n.Ready(), n.Object.UID, n.Object.Spec.ProviderID, n.Object.CreationTimestamp.Unix(), n.Object.DeletionTimestamp == nil,
			n.Object.Annotations[cluster.DaemonPodAnnotation], n.Object.Annotations[cluster.DoNotDisruptAnnotation])
	})
	s.Pods(func(p *cluster.Pod) {
		fmt.Fprintln(&b, p.Name(), p.Daemon(), p.Mirror(), p.Priority, p.Request, p.Object.DeletionTimestamp == nil)
		for _, rules := range removalRules {
			for _, at := range []int64{0, 500, 1000} { // objects that were changed anywhere have times up to 1000
				c := drainability.Context{Rules: &rules, State: s, Now: time.Unix(at, 0)}
				fmt.Fprintln(&b, c.Judge(p))
			}
		}
	})
	for _, w := range s.Workloads() {
		fmt.Fprintln(&b, w.Kind, w.Namespace, w.Name, w.Replicas)
	}
	return b.String()
}

// randomSubjects draws pods that want to go somewhere.
func randomSubjects(t *rapid.T) (out []*v1.Pod) {
	for _, name := range testkit.Names("subject", 3) {
		p := testkit.RandomPod(t, name)
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			testkit.Perturb(t, p)
		}
		if testkit.Uniform(t, 2, "anywhere") == 0 {
			testkit.MutateAnywhere(t, p)
		}
		p.Spec.NodeName = ""
		out = append(out, p)
	}
	return out
}

func trim(o metav1.Object) metav1.Object { return cluster.Trim(o) }

// encoded is what comes back from a recording: the trimmed object, written and
// read.
func encoded(o metav1.Object) metav1.Object {
	raw, err := json.Marshal(cluster.Trim(o))
	if err != nil {
		panic(err)
	}
	into := reflect.New(reflect.TypeOf(o).Elem()).Interface().(metav1.Object)
	if err := json.Unmarshal(raw, into); err != nil {
		panic(err)
	}
	return into
}

func TestPropertyTrimmedObjectsMeanTheSame(t *testing.T) {
	for name, copied := range map[string]func(metav1.Object) metav1.Object{"trimmed": trim, "encoded and decoded": encoded} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				schema := cluster.NewSchema()
				whole := testkit.RandomInventory(t, 3)
				subjects := randomSubjects(t)
				var others []*v1.Pod
				for _, p := range subjects {
					others = append(others, copied(p).(*v1.Pod))
				}
				want := answers(whole.State(schema), subjects)
				if got := answers(whole.Map(copied).State(schema), others); got != want {
					t.Fatalf("%s, the cluster answers:\n%s\nwhole:\n%s", name, got, want)
				}
			})
		})
	}
}

func TestPropertyAClassIsThatOfTheTrimmedPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testkit.RandomInventory(t, 2).State(cluster.NewSchema())
		e, err := engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range randomSubjects(t) {
			class := e.Class(s.Schema.ParsePod(p))
			if e.Class(s.Schema.ParsePod(cluster.Trim(p))) != class {
				t.Fatalf("the trimmed pod is of another class: %+v", p)
			}
			if e.Class(s.Schema.ParsePod(encoded(p).(*v1.Pod))) != class {
				t.Fatalf("the encoded and decoded pod is of another class: %+v", p)
			}
		}
	})
}

func TestPropertyAPodParsesAsItsTrimmedCopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := cluster.NewSchema()
		for _, o := range randomSubjects(t) {
			want := schema.ParsePod(o)
			for _, copied := range []func(metav1.Object) metav1.Object{trim, encoded} {
				got := schema.ParsePod(copied(o).(*v1.Pod))
				got.Object, want.Object = nil, nil
				if got, want := fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", *want); stripped(got) != stripped(want) {
					t.Fatalf("parsed from a copy:\n%s\nwant:\n%s", got, want)
				}
			}
		}
	})
}

// stripped leaves out the addresses of terms.
func stripped(text string) string {
	fields := strings.Fields(text)
	for i, f := range fields {
		if at := strings.Index(f, "0x"); at >= 0 {
			fields[i] = f[:at]
		}
	}
	return strings.Join(fields, " ")
}

// TestPropertyAnUpdateWithoutATraceChangesNothing changes one object of a cluster
// anywhere. If the state treats that as no change, every answer has to be as if
// the cluster had been read anew.
func TestPropertyAnUpdateWithoutATraceChangesNothing(t *testing.T) {
	passed := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		schema := cluster.NewSchema()
		inv := testkit.RandomInventory(t, 3)
		subjects := randomSubjects(t)
		s := inv.State(schema)
		var all []metav1.Object
		inv.Each(func(o metav1.Object) { all = append(all, o) })
		old := all[testkit.Uniform(t, len(all), "which")]
		changed := old.(runtime.Object).DeepCopyObject().(metav1.Object)
		for range rapid.IntRange(1, 2).Draw(t, "mutations") {
			testkit.MutateAnywhere(t, changed)
		}
		if !leavesNoTrace(s, changed) {
			return
		}
		passed[fmt.Sprintf("%T", old)]++
		fresh := inv.Map(func(o metav1.Object) metav1.Object {
			if o == old {
				return changed
			}
			return o
		})
		if got, want := answers(s, subjects), answers(fresh.State(schema), subjects); got != want {
			t.Fatalf("%T changed from\n%+v\nto\n%+v\nwithout a trace; the state answers\n%s\nread anew\n%s", old, old, changed, got, want)
		}
	})
	if len(passed) < 8 && !t.Failed() && !testing.Short() { // a fifth of the cases doesn't reach that many kinds
		t.Errorf("updates of %d kinds left no trace, want most of the kinds: %v", len(passed), passed)
	}
}

// leavesNoTrace updates an object as the core does, and reports whether caches
// pass that over.
func leavesNoTrace(s *cluster.State, o metav1.Object) bool {
	if p, ok := o.(*v1.Pod); ok {
		parsed := s.Schema.ParsePod(p)
		n := s.NodeOf(p.UID)
		return n != nil && n.Name == p.Spec.NodeName && cluster.SamePod(s.PodOn(p.UID), parsed)
	}
	from := s.Head()
	testkit.Set(s, o)
	changes, _ := s.Since(from)
	return len(changes) == 0 || len(changes) == 1 && (changes[0].Op == cluster.ObjectRenewed || changes[0].Op == cluster.WorkloadRenewed)
}

func TestPropertyTrimLeavesTheOriginalAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		testkit.RandomInventory(t, 2).Each(func(o metav1.Object) {
			before, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			once := cluster.Trim(o)
			after, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if string(after) != string(before) {
				t.Fatalf("trimming has changed\n%s\nto\n%s", before, after)
			}
			if again := cluster.Trim(once); !reflect.DeepEqual(again, once) {
				t.Fatalf("trimmed twice:\n%+v\nonce:\n%+v", again, once)
			}
		})
	})
}

// TestTrimmedPodsNeedTheSameFeatures of a kubelet, by each field that tells one.
func TestTrimmedPodsNeedTheSameFeatures(t *testing.T) {
	mounts := []v1.VolumeMount{{Name: "v", MountPath: "/v"}, {Name: "w", MountPath: "/w", BindMountOptions: []string{"noexec"}}}
	off := false
	rules := []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	s := cluster.New(cluster.NewSchema())
	e, err := engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain := e.Class(s.Schema.ParsePod(testkit.Pod("p").Obj()))
	for name, change := range map[string]func(*v1.PodSpec){
		"mounts of a container":       func(p *v1.PodSpec) { p.Containers[0].VolumeMounts = mounts },
		"mounts of an init container": func(p *v1.PodSpec) { p.InitContainers = []v1.Container{{VolumeMounts: mounts}} },
		"mounts of an ephemeral container": func(p *v1.PodSpec) {
			p.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{VolumeMounts: mounts}}}
		},
		"rules for restarts":                  func(p *v1.PodSpec) { p.Containers[0].RestartPolicyRules = rules },
		"user namespaces on the host network": func(p *v1.PodSpec) { p.HostNetwork, p.HostUsers = true, &off },
	} {
		pod := testkit.Pod("p").Obj()
		change(&pod.Spec)
		whole, trimmed := e.Class(s.Schema.ParsePod(pod)), e.Class(s.Schema.ParsePod(cluster.Trim(pod)))
		if whole == plain || trimmed != whole {
			t.Errorf("%s: like a pod without: %t; the same when it is trimmed: %t", name, whole == plain, trimmed == whole)
		}
	}
}
