package core_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file lets what people and other programs write to objects be anything: Berth goes on, and
// its invariants hold.

// fuzzed is an autoscaling core with a group of two nodes: one has a pod, the other is empty. A
// pod that fits on neither waits.
type fuzzed struct {
	*driven
	nodes   []*v1.Node
	running *v1.Pod
	pending *v1.Pod
	daemons *appsv1.DaemonSet
	group   nodegroup.Group
	claim   *v1.PersistentVolumeClaim
	request *autoscalingapi.ProvisioningRequest
}

func newFuzzed(t testing.TB) *fuzzed {
	w := &fuzzed{driven: newDriven(t, autoscaling(func(a *core.Autoscale) { a.UnneededTime, a.DelayAfterAdd = 20*time.Second, 0 }), prompt{}, defaults)}
	for _, name := range []string{"n0", "n1"} {
		n := testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Zone("a").Obj()
		n.Annotations, n.Spec.ProviderID = map[string]string{}, name
		w.nodes = append(w.nodes, n)
	}
	w.running = testkit.Pod("running").Req("cpu", "3").Owner("apps/v1", "ReplicaSet", "r").On("n0").Annotate("a", "b").Obj()
	w.pending = testkit.Pod("pending").Req("cpu", "5").Annotate("a", "b").Uses("claim").Obj()
	w.daemons = &appsv1.DaemonSet{}
	w.daemons.Namespace, w.daemons.Name, w.daemons.UID = "kube-system", "d", "d"
	w.daemons.Spec.Template.Annotations = map[string]string{}
	w.daemons.Spec.Template.Spec = testkit.Pod("d").Req("cpu", "1").Obj().Spec
	template := testkit.Node("template").Alloc("cpu", "8", "memory", "16Gi").Obj()
	template.Annotations = map[string]string{}
	w.group = nodegroup.Group{ID: "g", Max: 5, Target: 2, Template: template, Instances: []nodegroup.Instance{{ID: "n0", Node: "n0"}, {ID: "n1", Node: "n1"}}}
	w.claim = &v1.PersistentVolumeClaim{}
	w.claim.Namespace, w.claim.Name, w.claim.Annotations = "default", "claim", map[string]string{}
	w.request = &autoscalingapi.ProvisioningRequest{}
	w.request.Namespace, w.request.Name, w.request.UID = "default", "request", "request"
	w.request.Spec.ProvisioningClassName = autoscalingapi.BestEffortAtomic
	w.request.Spec.Parameters = map[string]string{}
	w.request.Spec.PodSets = []autoscalingapi.PodSet{{PodTemplateRef: autoscalingapi.LocalObjectRef{Name: "t"}, Count: 2}}
	return w
}

// run shows the objects and plays two minutes, from the middle on with n1 and the pod changed so
// that there is something to do.
func (w *fuzzed) run(standBy bool, more ...step.Input) {
	shape := &v1.PodTemplate{Template: v1.PodTemplateSpec{Spec: testkit.Pod("t").Req("cpu", "1").Obj().Spec}}
	shape.Namespace, shape.Name = "default", "t"
	in := []step.Input{step.GroupsSet{Groups: []nodegroup.Group{w.group}}, step.DaemonSetSet{DaemonSet: w.daemons}, step.ObjectSet{Object: w.claim}, step.ObjectSet{Object: shape}, step.ObjectSet{Object: w.request}}
	for _, n := range w.nodes {
		in = append(in, step.NodeSet{Node: n, Group: "g"})
	}
	in = append(in, step.PodSet{Pod: w.running}, step.PodSet{Pod: w.pending})
	in = append(in, more...)
	now := time.Unix(1000, 0)
	if standBy {
		if err := w.StandBy(now, in...); err != nil {
			w.t.Fatal(err)
		}
		w.BecomeLeader(now)
		in = nil
	}
	for i := range 12 {
		w.stepOut(now, in...)
		in = nil
		if i == 6 {
			again := w.nodes[1].DeepCopy()
			again.Labels["again"] = "yes"
			in = []step.Input{step.NodeSet{Node: again, Group: "g"}, step.PodGone{UID: w.running.UID}, step.PodSet{Pod: w.pending.DeepCopy()}}
		}
		now = now.Add(10 * time.Second)
	}
	w.Core().View().ExplainNodes()
	w.Core().View().Explain("default", "pending")
	w.Core().View().ExplainGroups()
}

// annotations that Berth reads, on any kind of object.
var annotations = []string{
	autoscaler.RemovalNote, cluster.SafeToEvictAnnotation, cluster.LocalVolumesAnnotation, cluster.DaemonPodAnnotation, cluster.ScaleDownDisabledAnnotation,
	cluster.DoNotDisruptAnnotation, cluster.SurgeAnnotation, cluster.ScaleUpDelayAnnotation, cluster.AnnBindCompleted, cluster.AnnSelectedNode,
	nodegroup.CSIDriversAnnotation, autoscalingapi.BufferAnnotation, autoscalingapi.ConsumeAnnotation, autoscalingapi.ClassAnnotation,
	cluster.DelayDeletionPrefix + "x", "cluster-autoscaler.kubernetes.io/enable-ds-eviction", v1.MirrorPodAnnotationKey, v1.BetaStorageClassAnnotation,
	autoscalingapi.ValidUntilSeconds, autoscalingapi.NoRetry,
}

// taints that Berth reads or writes.
var taints = []string{autoscaler.DeletionCandidateTaint, autoscaler.ToBeDeletedTaint, v1.TaintNodeNotReady, v1.TaintNodeUnschedulable, "startup-taint.cluster-autoscaler.kubernetes.io/x", "other"}

// FuzzMarks writes any value into any annotation and any taint that Berth reads, on the objects
// that an instance finds when it starts or, with standBy, when it takes over.
func FuzzMarks(f *testing.F) {
	for key := range annotations {
		for _, value := range []string{"", "true", "cordoned; it has been empty", "10m", "-1s", "ebs.csi.aws.com=25,x", "99999999999999999999h", "n1"} {
			f.Add(byte(key), byte(key), value, "1000", key%2 == 0)
		}
	}
	for key := range taints {
		for _, value := range []string{"", "990", "-1", "9223372036854775807", "soon", "1e3", "1010"} {
			f.Add(byte(0), byte(key), "cordoned; it has been empty", value, key%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, annotation, taint byte, value, mark string, standBy bool) {
		w := newFuzzed(t)
		key := annotations[int(annotation)%len(annotations)]
		for _, m := range []map[string]string{w.nodes[0].Annotations, w.nodes[1].Annotations, w.running.Annotations, w.pending.Annotations, w.daemons.Spec.Template.Annotations,
			w.group.Template.Annotations, w.claim.Annotations, w.request.Spec.Parameters} {
			m[key] = value
		}
		effect := [...]v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffect(mark)}[taint>>4&3]
		w.nodes[1].Spec.Taints = []v1.Taint{{Key: taints[int(taint&15)%len(taints)], Value: mark, Effect: effect}}
		w.run(standBy)
	})
}

// objectKinds are the objects that FuzzObject makes of text.
var objectKinds = []func() runtime.Object{
	func() runtime.Object { return &v1.Pod{} }, func() runtime.Object { return &v1.Node{} }, func() runtime.Object { return &appsv1.DaemonSet{} },
	func() runtime.Object { return &v1.Service{} }, func() runtime.Object { return &v1.ReplicationController{} }, func() runtime.Object { return &appsv1.ReplicaSet{} },
	func() runtime.Object { return &appsv1.StatefulSet{} }, func() runtime.Object { return &batchv1.Job{} },
}

func init() {
	for kind := cluster.NamespaceKind; cluster.NewObject(kind) != nil; kind++ {
		objectKinds = append(objectKinds, func() runtime.Object {
			o, _ := cluster.NewObject(kind).(runtime.Object)
			return o
		})
	}
}

// inputOf returns the input that an informer makes of an object; nil for one without a name,
// which no API server has.
func inputOf(o runtime.Object) step.Input {
	switch o := o.(type) {
	case *v1.Pod:
		o.UID = "fuzzed"
		return step.PodSet{Pod: o}
	case *v1.Node:
		return step.NodeSet{Node: o, Group: "g"}
	case *appsv1.DaemonSet:
		return step.DaemonSetSet{DaemonSet: o}
	case cluster.Object:
		if cluster.KindOf(o) != cluster.NoObject {
			return step.ObjectSet{Object: o}
		}
	}
	return step.WorkloadSet{Workload: cluster.WorkloadOf(o)}
}

// anAmount finds the amounts in the objects below.
var anAmount = regexp.MustCompile(`"(-1|9e99|1E|0|1e30)"`)

// FuzzObject makes an object of any kind of text, shows it, and takes it away again.
func FuzzObject(f *testing.F) {
	for kind, text := range []string{
		`{"metadata":{"name":"p","namespace":"default","labels":{"a":"b"}},"spec":{"schedulerName":"default-scheduler","priority":10,"containers":[{"name":"c","resources":{"requests":{"cpu":"9e99","x.io/y":"-1"}},"ports":[{"hostPort":80}]}],"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}]}},"topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"","whenUnsatisfiable":"DoNotSchedule"}],"tolerations":[{"operator":"Gt","value":"x"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"claim"}}]}}`,
		`{"metadata":{"name":"n9"},"spec":{"taints":[{"key":"a","effect":"Odd"}],"unschedulable":true},"status":{"allocatable":{"cpu":"-1","memory":"1E","pods":"0"},"images":[{"names":null,"sizeBytes":-1}]}}`,
		`{"metadata":{"name":"d","namespace":"kube-system"},"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`,
		`{"metadata":{"name":"s","namespace":"default"},"spec":{"selector":{"a":"b"}}}`,
		`{"metadata":{"name":"c","namespace":"default"},"spec":{"replicas":-1,"selector":{}}}`,
		`{"metadata":{"name":"r","namespace":"default"},"spec":{"replicas":2147483647,"selector":{"matchExpressions":[{"key":"","operator":"?"}]}},"status":{"replicas":-5}}`,
		`{"metadata":{"name":"s","namespace":"default"},"spec":{"replicas":0},"status":{"currentRevision":"a","updateRevision":"b","currentReplicas":2147483647,"updatedReplicas":2147483647}}`,
		`{"metadata":{"name":"j","namespace":"default"},"spec":{"parallelism":-2147483648,"completions":0},"status":{"active":2147483647,"succeeded":2147483647}}`,
		`{"metadata":{"name":"default","labels":{"a":"b"}}}`,
		`{"metadata":{"name":"claim","namespace":"default"},"spec":{"storageClassName":"sc","resources":{"requests":{"storage":"-1"}},"volumeName":"pv","accessModes":[""]}}`,
		`{"metadata":{"name":"pv"},"spec":{"claimRef":{},"csi":{"driver":"d","volumeHandle":""},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Lt","values":[]}]}]}}}}`,
		`{"metadata":{"name":"sc"},"provisioner":"p","volumeBindingMode":"WaitForFirstConsumer","allowedTopologies":[{}]}`,
		`{"metadata":{"name":"n0"},"spec":{"drivers":[{"name":"d","nodeID":"n0","topologyKeys":["zone"],"allocatable":{"count":-1}}]}}`,
		`{"metadata":{"name":"d"},"spec":{"storageCapacity":true}}`,
		`{"metadata":{"name":"x","namespace":"default"},"storageClassName":"sc","nodeTopology":{"matchLabels":{"a":""}},"capacity":"-1"}`,
		`{"metadata":{"name":"va"},"spec":{"nodeName":"n0","attacher":"d","source":{}}}`,
		`{"metadata":{"name":"b","namespace":"default"},"spec":{"maxUnavailable":"200%","selector":{"matchLabels":{"a":"b"}}},"status":{"disruptionsAllowed":-1,"disruptedPods":{"running":null}}}`,
		`{"metadata":{"name":"cb","namespace":"default","uid":"cb"},"spec":{"podTemplateRef":{"name":"t"},"replicas":2,"percentage":-1,"limits":{"cpu":"1e30"}}}`,
		`{"metadata":{"name":"pr","namespace":"default","uid":"pr"},"spec":{"provisioningClassName":"check-capacity.autoscaling.x-k8s.io","podSets":[{"podTemplateRef":{"name":"t"},"count":2147483647},{"count":-1}]},"status":{"conditions":[{"type":"Provisioned","status":"True","lastTransitionTime":"0001-01-01T00:00:00Z"}]}}`,
		`{"metadata":{"name":"t","namespace":"default"},"template":{"spec":{"schedulerName":"other"}}}`,
		`{"metadata":{"name":"Deployment/d","namespace":"default"},"Replicas":-3}`,
	} {
		f.Add(byte(kind), text)
		for _, amount := range []string{`"4e999999999"`, `"1e-999999999"`, `"9223372036854775808e99999999"`} {
			f.Add(byte(kind), anAmount.ReplaceAllLiteralString(text, amount))
		}
		f.Add(byte(kind), `{}`)
	}
	f.Fuzz(func(t *testing.T, kind byte, text string) {
		make := objectKinds[int(kind)%len(objectKinds)]
		o := make()
		if o == nil || door.Read([]byte(text), o) != nil || strings.Contains(text, `"percentage"`) && strings.Contains(text, `"Replicas"`) {
			return
		}
		w := newFuzzed(t)
		w.run(false, inputOf(o))
	})
}
