package replay

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies what of objects is recorded: which fields, and that those are enough for
// the rules.

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/fields.txt")

// TestFields lists the fields of objects that a recording may hold: an object of each kind
// is encoded with a value in every field, and the fields that are left are compared with
// testdata/fields.txt. Whoever has cluster.Trim keep another field sees here that recordings
// will show it.
func TestFields(t *testing.T) {
	var b strings.Builder
	known := map[string]map[string]bool{} // paths by the name of the input
	for _, in := range everyInputWithObjects() {
		encoded, err := encode(in)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(encoded.Value, &value); err != nil {
			t.Fatal(err)
		}
		name := encoded.Kind
		if o, ok := in.(step.ObjectSet); ok {
			name = fmt.Sprintf("%s of %T", name, o.Object)
		}
		paths := map[string]bool{}
		leaves(value, "", paths)
		known[name] = paths
		fmt.Fprintf(&b, "%s\n", name)
		within := map[string]string{"DaemonSet.spec.template.": "PodSet: Pod.", "object.template.": "PodSet: Pod.", "object.Template.": "PodSet: Pod.", "Groups[].Template.": "NodeSet: Node."}
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if at := sameWithin(path, known); at == "" {
				fmt.Fprintf(&b, "  %s\n", path)
			} else if within[at] != "" {
				fmt.Fprintf(&b, "  %s of those of %s\n", at, within[at])
				within[at] = ""
			}
		}
	}
	testkit.Generated(t, filepath.Join("testdata", "fields.txt"), b.String(), "go test ./sim/replay -rewrite", *rewrite)
}

// sameWithin returns the prefix of a path that leads to an object of a kind which was listed
// before with the rest of the path; "" when there is none.
func sameWithin(path string, known map[string]map[string]bool) string {
	for prefix, input := range map[string]string{"DaemonSet.spec.template.": "PodSet", "object.template.": "PodSet", "object.Template.": "PodSet", "Groups[].Template.": "NodeSet"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			object := strings.TrimSuffix(input, "Set") + "."
			if known[input][object+rest] {
				return prefix
			}
		}
	}
	return ""
}

// leaves collects the paths of all values that aren't lists or objects.
func leaves(v any, path string, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			leaves(e, path+"."+k, out)
		}
	case []any:
		for _, e := range v {
			leaves(e, path+"[]", out)
		}
	case nil:
	default:
		if v != "" && v != 0.0 && v != false { // every field that was encoded has a value
			out[terms.ReplaceAllString(strings.TrimPrefix(path, "."), "$1")] = true
		}
	}
}

// terms are the parts of selectors, which are listed as one.
var terms = regexp.MustCompile(`(matchExpressions|matchFields|matchLabelExpressions)\[\]\..*`)

// everyInputWithObjects returns one input for each kind of object, with every field set. Of
// maps that are kept in part, it sets the keys that are kept, and another.
func everyInputWithObjects() []step.Input {
	annotate := func(m *metav1.ObjectMeta) {
		m.Annotations["berth.dev/any"], m.Annotations["cluster-autoscaler.kubernetes.io/any"] = "*", "*"
		m.Annotations["autoscaling.x-k8s.io/any"] = "*"
		m.Annotations[v1.MirrorPodAnnotationKey], m.Annotations[cluster.DoNotDisruptAnnotation] = "*", "*"
	}
	pod := filled(&v1.Pod{})
	annotate(&pod.ObjectMeta)
	pod.Namespace = cluster.SystemNamespace // of others less is kept
	pod.Status.Conditions[0].Type = v1.PodScheduled
	node := filled(&v1.Node{})
	annotate(&node.ObjectMeta)
	node.Status.Conditions[0].Type = v1.NodeReady
	claim := filled(&v1.PersistentVolumeClaim{})
	for _, key := range []string{v1.BetaStorageClassAnnotation, cluster.AnnBindCompleted, cluster.AnnSelectedNode} {
		claim.Annotations[key] = "*"
	}
	claim.Spec.Resources.Requests[v1.ResourceStorage] = claim.Spec.Resources.Requests["*"]
	volume := filled(&v1.PersistentVolume{})
	volume.Annotations[v1.BetaStorageClassAnnotation] = "*"
	volume.Spec.Capacity[v1.ResourceStorage] = volume.Spec.Capacity["*"]
	csiNode := filled(&storagev1.CSINode{})
	csiNode.Annotations[v1.MigratedPluginsAnnotationKey] = "*"
	daemons, template, scalable := filled(&appsv1.DaemonSet{}), filled(&v1.PodTemplate{}), filled(&cluster.Scalable{})
	for _, m := range []*metav1.ObjectMeta{&daemons.Spec.Template.ObjectMeta, &template.Template.ObjectMeta, &scalable.Template.ObjectMeta} {
		annotate(m)
	}
	podGroup := filled(&schedulingv1beta1.PodGroup{})
	podGroup.Annotations[cluster.TopologyLevelsAnnotation] = "*"
	podGroup.Status.Conditions[0].Type = schedulingv1beta1.PodGroupInitiallyScheduled
	request := filled(&autoscalingapi.ProvisioningRequest{})
	request.Spec.Parameters[autoscalingapi.NoRetry], request.Spec.Parameters[autoscalingapi.ValidUntilSeconds] = "*", "*"

	inputs := []step.Input{
		step.PodSet{Pod: pod}, step.NodeSet{Node: node}, step.DaemonSetSet{DaemonSet: daemons},
		step.GroupsSet{Groups: []nodegroup.Group{{ID: "*", Template: node, Instances: []nodegroup.Instance{{ID: "*"}}}}},
		step.WorkloadSet{Workload: cluster.WorkloadOf(filled(&v1.Service{}))}, step.WorkloadSet{Workload: cluster.WorkloadOf(filled(&appsv1.ReplicaSet{}))},
	}
	for _, o := range []cluster.Object{filled(&v1.Namespace{}), claim, volume, filled(&storagev1.StorageClass{}), csiNode,
		filled(&storagev1.CSIDriver{}), filled(&storagev1.CSIStorageCapacity{}), filled(&storagev1.VolumeAttachment{}), filled(&policyv1.PodDisruptionBudget{}), filled(&resourcev1.DeviceClass{}),
		filled(&resourcev1.ResourceSlice{}), filled(&resourcev1.ResourceClaim{}), filled(&resourcev1.DeviceTaintRule{}), podGroup,
		template, scalable, filled(&autoscalingapi.CapacityBuffer{}), request} {
		inputs = append(inputs, step.ObjectSet{Object: o})
	}
	return inputs
}

func filled[O metav1.Object](o O) O {
	testkit.Fill(o, "*")
	return o
}

// TestPropertyARecordedObjectMeansTheSame encodes and decodes a cluster whose
// objects were changed anywhere: each comes back as what Berth reads of it.
func TestPropertyARecordedObjectMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := cluster.NewSchema()
		inv := testkit.RandomInventory(t, 2)
		s := inv.State(schema)
		e, err := engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			p := testkit.RandomPod(t, fmt.Sprint("subject", i))
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				testkit.Perturb(t, p)
			}
			testkit.MutateAnywhere(t, p)
			again := recorded(t, step.PodSet{Pod: p}).(step.PodSet).Pod
			if e.Class(schema.ParsePod(again)) != e.Class(schema.ParsePod(p)) {
				t.Fatalf("a recorded pod is of another class than\n%+v", p)
			}
		}
		for _, n := range inv.Nodes {
			from := s.Head()
			s.SetNode(schema.ParseNode(recorded(t, step.NodeSet{Node: n}).(step.NodeSet).Node, ""))
			if s.Head() != from {
				t.Fatalf("a recorded node differs to the rules from\n%+v", n)
			}
		}
		for _, o := range s.Objects() {
			from := s.Head()
			s.SetObject(recorded(t, step.ObjectSet{Object: o}).(step.ObjectSet).Object)
			if changes, _ := s.Since(from); len(changes) != 1 || changes[0].Op != cluster.ObjectRenewed {
				t.Fatalf("a recorded object differs to the rules from\n%+v", o)
			}
		}
		for _, w := range s.Workloads() {
			if w.Kind == cluster.DaemonSet {
				continue // comes as an object
			}
			from := s.Head()
			s.SetWorkload(recorded(t, step.WorkloadSet{Workload: w}).(step.WorkloadSet).Workload)
			if s.Head() != from {
				t.Fatalf("a recorded workload differs to the rules from\n%+v", w)
			}
		}
	})
}

// recorded returns what a replay makes of an input.
func recorded(t *rapid.T, in step.Input) step.Input {
	encoded, err := encode(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
