package replay_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
	"github.com/berthproject/berth/tools/replay"
)

// This file specifies what a recording must not hold.

// secret is planted wherever people put some, in a way that no rule reads.
const secret = "hunter2"

// annotated returns metadata with secrets in keys and values.
func annotated(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{"note": secret, v1.LastAppliedConfigAnnotation: secret, secret: "key"}}
}

func podWithSecrets() *v1.Pod {
	pod := testkit.Pod("p").Obj()
	pod.Annotations = map[string]string{"note": secret, "berth.dev/run-for": "kept"}
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
	node.Annotations = annotated("").Annotations
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
		&storagev1.VolumeAttachment{ObjectMeta: annotated("va"),
			Spec:   storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &attached, InlineVolumeSpec: &v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: csi}}}},
			Status: storagev1.VolumeAttachmentStatus{AttachmentMetadata: map[string]string{"key": secret}}},
	}
}

// TestNothingSecretIsRecorded records objects and a configuration with secrets, and
// searches the file for them. What Berth reads must be there.
func TestNothingSecretIsRecorded(t *testing.T) {
	pod, node, csi := podWithSecrets(), nodeWithSecrets(), &v1.CSIPersistentVolumeSource{}
	in := []step.Input{
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
	for _, o := range storageWithSecrets(csi) {
		in = append(in, step.ObjectSet{Object: o})
	}
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
	for _, kept := range []string{`"berth.dev/run-for":"kept"`, "extender.example", `"volumeHandle":"disk"`, `"scratch"`} {
		if !bytes.Contains(raw, []byte(kept)) {
			t.Errorf("the recording lacks %s, which Berth reads:\n%s", kept, raw)
		}
	}
	if pod.Spec.Containers[0].Env == nil || csi.NodeStageSecretRef == nil {
		t.Error("recording has changed the objects themselves")
	}
}
