package replay_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/replay"
)

// This file specifies what a recording must not hold.

// secret is planted wherever people put some, in a way that no rule reads.
const secret = "hunter2"

// annotated returns metadata with secrets in keys and values.
func annotated(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{"note": secret, v1.LastAppliedConfigAnnotation: secret, secret: "key"},
		Finalizers: []string{secret}, GenerateName: secret, OwnerReferences: []metav1.OwnerReference{{Kind: secret, Name: secret}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: secret, FieldsV1: metav1.NewFieldsV1(`{"f:hunter2":{}}`)}}}
}

// plant puts what annotated has into the metadata of an object, beside what it has.
func plant(o metav1.Object) {
	from := annotated("")
	annotations := from.Annotations
	maps.Copy(annotations, o.GetAnnotations())
	o.SetAnnotations(annotations)
	o.SetFinalizers(from.Finalizers)
	o.SetGenerateName(from.GenerateName)
	o.SetOwnerReferences(append(from.OwnerReferences, o.GetOwnerReferences()...))
	o.SetManagedFields(from.ManagedFields)
}

func podWithSecrets() *v1.Pod {
	pod := testkit.Pod("p").Obj()
	pod.Annotations = map[string]string{"berth.dev/run-for": "kept"}
	plant(pod)
	pod.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: secret}}
	pod.Spec.ServiceAccountName = secret
	c := &pod.Spec.Containers[0]
	c.Env = []v1.EnvVar{{Name: "PASSWORD", Value: secret}}
	c.EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: secret}}}}
	c.Command, c.Args = []string{"login", secret}, []string{"--password=" + secret}
	c.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{secret}}}}
	c.VolumeMounts = []v1.VolumeMount{{Name: secret, MountPath: secret}}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: secret, Command: []string{secret}}}}
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: secret}}
	local := &v1.LocalObjectReference{Name: secret}
	for _, source := range []v1.VolumeSource{
		{Secret: &v1.SecretVolumeSource{SecretName: secret}},
		{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{Secret: &v1.SecretProjection{LocalObjectReference: *local}}}}},
		{CSI: &v1.CSIVolumeSource{Driver: "vault", VolumeAttributes: map[string]string{"key": secret}, NodePublishSecretRef: local}},
		{FlexVolume: &v1.FlexVolumeSource{SecretRef: local, Options: map[string]string{"key": secret}}},
		{Cinder: &v1.CinderVolumeSource{VolumeID: "disk", SecretRef: local}},
		{ISCSI: &v1.ISCSIVolumeSource{IQN: "disk", SecretRef: local}},
		{RBD: &v1.RBDVolumeSource{CephMonitors: []string{"m"}, SecretRef: local, RadosUser: secret, Keyring: secret}},
		{AzureFile: &v1.AzureFileVolumeSource{SecretName: secret}},
		{HostPath: &v1.HostPathVolumeSource{Path: secret}},
		{Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{ObjectMeta: annotated("")}}},
	} {
		volume := v1.Volume{Name: secret, VolumeSource: source}
		if source.Ephemeral != nil || source.HostPath != nil {
			volume.Name = "scratch" // which is part of the claim's name, or keeps the node
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	}
	return pod
}

func nodeWithSecrets() *v1.Node {
	node := testkit.Node("n").Obj()
	plant(node)
	node.Finalizers = []string{"kept.example/finalizer"} // the name of a controller, and told: it says why a deleted node is still there
	//nolint:staticcheck // deprecated, and an old object may still have it
	node.Spec.ConfigSource = &v1.NodeConfigSource{ConfigMap: &v1.ConfigMapNodeConfigSource{Name: secret}}
	return node
}

// storageWithSecrets returns objects of storage. The first holds csi.
func storageWithSecrets(csi *v1.CSIPersistentVolumeSource) []cluster.Object {
	ref := &v1.SecretReference{Namespace: "vault", Name: secret}
	csi.Driver, csi.VolumeHandle, csi.VolumeAttributes = "csi.example", "disk", map[string]string{"key": secret}
	for _, field := range []**v1.SecretReference{&csi.ControllerPublishSecretRef, &csi.NodeStageSecretRef, &csi.NodePublishSecretRef, &csi.ControllerExpandSecretRef, &csi.NodeExpandSecretRef} {
		*field = ref
	}
	volume := func(source v1.PersistentVolumeSource) *v1.PersistentVolume {
		return &v1.PersistentVolume{ObjectMeta: annotated("pv"), Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source, MountOptions: []string{secret}}}
	}
	attached := "pv"
	return []cluster.Object{
		volume(v1.PersistentVolumeSource{CSI: csi}),
		volume(v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{SecretRef: ref, Options: map[string]string{"key": secret}}}),
		volume(v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "disk", SecretRef: ref}}),
		volume(v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{SecretName: secret}}),
		&v1.PersistentVolumeClaim{ObjectMeta: annotated("c")},
		&storagev1.StorageClass{ObjectMeta: annotated("class"), Parameters: map[string]string{"secret": secret}, MountOptions: []string{secret}},
		&storagev1.CSINode{ObjectMeta: annotated("n")},
		&storagev1.CSIDriver{ObjectMeta: annotated("d"), Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: secret}}}},
		&resourcev1.DeviceClass{ObjectMeta: annotated("devices"), Spec: resourcev1.DeviceClassSpec{Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
			Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "d", Parameters: runtime.RawExtension{Raw: []byte(`{"token":"` + secret + `"}`)}}}}}}},
		&storagev1.VolumeAttachment{ObjectMeta: annotated("va"),
			Spec:   storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &attached, InlineVolumeSpec: &v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: csi}}}},
			Status: storagev1.VolumeAttachmentStatus{AttachmentMetadata: map[string]string{"key": secret}}},
	}
}

// workloadsWithSecrets returns what makes or selects pods, with a template that has secrets.
func workloadsWithSecrets(template v1.PodTemplateSpec) (out []step.Input) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, o := range []runtime.Object{
		&v1.Service{ObjectMeta: annotated("s"), Spec: v1.ServiceSpec{Selector: selector.MatchLabels, ExternalName: secret}},
		&v1.ReplicationController{ObjectMeta: annotated("c"), Spec: v1.ReplicationControllerSpec{Selector: selector.MatchLabels, Template: &template}},
		&appsv1.ReplicaSet{ObjectMeta: annotated("r"), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		&appsv1.StatefulSet{ObjectMeta: annotated("s"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template, ServiceName: secret}},
		&batchv1.Job{ObjectMeta: annotated("j"), Spec: batchv1.JobSpec{Selector: selector, Template: template}},
	} {
		out = append(out, step.WorkloadSet{Workload: cluster.WorkloadOf(o)})
	}
	return out
}

// everythingWithSecrets returns an input of each kind that has an object, with secrets wherever
// no rule reads them. csi is a part of one.
func everythingWithSecrets(csi *v1.CSIPersistentVolumeSource) (in []step.Input, pod *v1.Pod) {
	pod, node := podWithSecrets(), nodeWithSecrets()
	in = []step.Input{
		step.PodSet{Pod: pod}, step.NodeSet{Node: node},
		step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Template: node}}},
		step.DaemonSetSet{DaemonSet: &appsv1.DaemonSet{ObjectMeta: annotated("d"),
			Spec: appsv1.DaemonSetSpec{Template: v1.PodTemplateSpec{ObjectMeta: annotated(""), Spec: pod.Spec}}}},
		step.ObjectSet{Object: &v1.Namespace{ObjectMeta: annotated("ns")}},
		step.ObjectSet{Object: &v1.PodTemplate{ObjectMeta: annotated("t"), Template: v1.PodTemplateSpec{ObjectMeta: annotated(""), Spec: pod.Spec}}},
		step.ObjectSet{Object: &cluster.Scalable{ObjectMeta: annotated("Deployment/d"), Template: v1.PodTemplateSpec{ObjectMeta: annotated(""), Spec: pod.Spec}}},
		step.ObjectSet{Object: &autoscalingapi.CapacityBuffer{ObjectMeta: annotated("b")}},
		step.ObjectSet{Object: &autoscalingapi.ProvisioningRequest{ObjectMeta: annotated("r"), Spec: autoscalingapi.ProvisioningRequestSpec{Parameters: map[string]string{"token": secret}}}},
	}
	for _, o := range append(storageWithSecrets(csi), &policyv1.PodDisruptionBudget{ObjectMeta: annotated("b")}, &storagev1.CSIStorageCapacity{ObjectMeta: annotated("c"), StorageClassName: "class"}) {
		in = append(in, step.ObjectSet{Object: o})
	}
	return append(in, workloadsWithSecrets(v1.PodTemplateSpec{ObjectMeta: annotated(""), Spec: pod.Spec})...), pod
}

// TestNothingSecretIsTold shows objects with secrets to a core that schedules and scales, and
// searches what it says about them: decisions, conditions and events, explanations, and the dump of
// its state.
func TestNothingSecretIsTold(t *testing.T) {
	in, pod := everythingWithSecrets(&v1.CSIPersistentVolumeSource{})
	scheduler := config.Default()
	schema, profiles := scheduler.Build()
	cfg, autoscale := core.DefaultConfig(profiles...), core.DefaultAutoscale()
	cfg.Autoscale = &autoscale
	chain, err := expander.NewChain(autoscale.Expander, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	tell := func(v any) {
		if err := json.NewEncoder(&told).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	w := &atOnce{inbox: in}
	driver, err := drive.New(drive.Config{Schema: schema, Core: cfg, Expander: chain, Workers: w, Inbox: func(in step.Input) { w.inbox = append(w.inbox, in) },
		Hooks: []drive.Hook{drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
			tell(r.Decisions)
			tell(r.Conditions)
			tell(r.Events)
			tell(r.StatusWrites)
			tell(r.Taints)
		})}})
	if err != nil {
		t.Fatal(err)
	}
	second := pod.DeepCopy()
	second.Name, second.UID, second.Spec.NodeName = "placed", "placed", "n"
	w.inbox = append(w.inbox, step.PodSet{Pod: second})
	for i := range 4 {
		in := w.inbox
		w.inbox = nil
		if _, err := driver.Step(time.Unix(1000+15*int64(i), 0), in...); err != nil {
			t.Fatal(err)
		}
		x, known := driver.Core().View().Explain(pod.Namespace, pod.Name)
		tell(x)
		n, _ := driver.Core().View().ExplainNode("n")
		tell(n)
		nodes, _ := driver.Core().View().ExplainNodes()
		tell(nodes)
		tell(driver.Core().View().ExplainGroups())
		if !known {
			t.Error("the pod isn't explained")
		}
	}
	driver.Core().State().Dump(&told)
	if at := bytes.Index(told.Bytes(), []byte(secret)); at >= 0 {
		t.Errorf("a secret is told, at …%s…", told.Bytes()[max(0, at-200):min(told.Len(), at+50)])
	}
	if !bytes.Contains(told.Bytes(), []byte("default/p")) {
		t.Errorf("nothing is told of the pod: %s", told.Bytes())
	}
}

// TestNothingSecretIsRecorded records objects and a configuration with secrets, and
// searches the file for them. What Berth reads must be there.
func TestNothingSecretIsRecorded(t *testing.T) {
	csi := &v1.CSIPersistentVolumeSource{}
	in, pod := everythingWithSecrets(csi)
	path := filepath.Join(t.TempDir(), "recording")
	r, err := replay.Create(path, 1<<20, replay.Header{Scheduler: `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration # hunter2
extenders:
- urlPrefix: https://kept:hunter2@extender.example
  filterVerb: filter
  tlsConfig: {keyData: aHVudGVyMg==, certData: aHVudGVyMg==, caData: aHVudGVyMg==}
`})
	if err != nil {
		t.Fatal(err)
	}
	r.Ended = func(err error) { t.Fatal(err) }
	r.Step(time.Unix(1, 0), 0, in, &step.Ready{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{secret, "aHVudGVyMg"} {
		if at := bytes.Index(raw, []byte(hidden)); at >= 0 {
			t.Errorf("the recording holds a secret, at …%s…", raw[max(0, at-100):min(len(raw), at+30)])
		}
	}
	for _, kept := range []string{`"berth.dev/run-for":"kept"`, "extender.example", "kept.example/finalizer", `"volumeHandle":"disk"`, `"scratch"`} {
		if !bytes.Contains(raw, []byte(kept)) {
			t.Errorf("the recording lacks %s, which Berth reads:\n%s", kept, raw)
		}
	}
	if pod.Spec.Containers[0].Env == nil || csi.NodeStageSecretRef == nil {
		t.Error("recording has changed the objects themselves")
	}
}
