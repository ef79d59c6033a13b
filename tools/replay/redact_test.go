package replay_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/testkit"
	"github.com/berthproject/berth/tools/replay"
)

// replays drives a core through one Step a second, records that, plays the recording and
// returns what was decided the first and the second time.
func replays(t *testing.T, steps ...[]step.Input) (first, second []step.Decision) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	recorder, err := replay.Create(path, 1<<30, replay.Header{})
	if err != nil {
		t.Fatal(err)
	}
	keep := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		first = append(first, r.Decisions...)
	})
	schema, scheduler := cluster.NewSchema(), config.Default()
	driver, err := drive.New(drive.Config{
		Schema: schema, Core: core.DefaultConfig(scheduler.Build(schema)...),
		Workers: drive.Unanswered{}, Inbox: func(step.Input) {}, Hooks: []drive.Hook{recorder, keep},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range steps {
		if _, err := driver.Step(time.Unix(int64(i+1), 0), in...); err != nil {
			t.Fatal(err)
		}
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := replay.Play(t.Context(), path, replay.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return first, again.Decisions
}

// TestWhatRulesReadIsRecorded has, for each thing that a recording may lose and
// a rule reads, a history that is decided otherwise without it.
func TestWhatRulesReadIsRecorded(t *testing.T) {
	node := func(name string) *testkit.NodeBuilder { return testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi") }
	pod := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "1", "memory", "1Gi") }
	set := func(objects ...any) (in []step.Input) {
		for _, o := range objects {
			switch o := o.(type) {
			case *testkit.NodeBuilder:
				in = append(in, step.NodeSet{Node: o.Obj()})
			case *testkit.PodBuilder:
				in = append(in, step.PodSet{Pod: o.Obj()})
			}
		}
		return in
	}
	restarting := pod("restarting")
	restarting.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	// Among equal nodes, what the pod's rules read decides.
	var equal []any
	for i := range 32 {
		equal = append(equal, node(fmt.Sprint("equal-", i)))
	}
	token := pod("with-a-token")
	token.Spec.Volumes = []v1.Volume{{Name: "kube-api-access", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}}}

	for _, c := range []struct {
		name  string
		steps [][]step.Input
	}{
		{"a container's rules for restarts", [][]step.Input{set(node("without-the-feature")), set(restarting)}},
		{"whether it has volumes that no rule reads", [][]step.Input{set(equal...), set(token)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := replays(t, c.steps...)
			if got, want := fmt.Sprint(list(second)), fmt.Sprint(list(first)); got != want {
				t.Errorf("replayed: %s\nrecorded: %s", got, want)
			}
		})
	}
}

func list(decisions []step.Decision) (out []string) {
	for i := range decisions {
		out = append(out, decisions[i].String(), decisions[i].Node)
	}
	return out
}

// TestNothingSecretIsRecorded plants a secret wherever people put some, in a way
// that no rule reads, and searches the file for it.
func TestNothingSecretIsRecorded(t *testing.T) {
	const secret = "hunter2"
	name := &v1.SecretReference{Namespace: "vault", Name: secret}
	annotations := map[string]string{"note": secret, v1.LastAppliedConfigAnnotation: secret, secret: "key"}

	p := testkit.Pod("p").Obj()
	p.Annotations = map[string]string{"note": secret, "berth.dev/run-for": "kept"}
	p.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: secret}}
	p.Spec.ServiceAccountName = secret
	c := &p.Spec.Containers[0]
	c.Env = []v1.EnvVar{{Name: "PASSWORD", Value: secret}}
	c.EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: secret}}}}
	c.Command, c.Args = []string{"login", secret}, []string{"--password=" + secret}
	c.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{secret}}}}
	c.VolumeMounts = []v1.VolumeMount{{Name: secret, MountPath: secret}}
	p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: secret, Command: []string{secret}}}}
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: secret}}
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
		{Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}}},
	} {
		volume := v1.Volume{Name: secret, VolumeSource: source}
		if source.Ephemeral != nil {
			volume.Name = "scratch" // which is part of the claim's name
		}
		p.Spec.Volumes = append(p.Spec.Volumes, volume)
	}
	n := testkit.Node("n").Obj()
	n.Annotations = annotations
	//nolint:staticcheck // deprecated, and an old object may still have it
	n.Spec.ConfigSource = &v1.NodeConfigSource{ConfigMap: &v1.ConfigMapNodeConfigSource{Name: secret}}

	volume := func(source v1.PersistentVolumeSource) *v1.PersistentVolume {
		return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Annotations: annotations},
			Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source, MountOptions: []string{secret}}}
	}
	csi := &v1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: "disk", VolumeAttributes: map[string]string{"key": secret},
		ControllerPublishSecretRef: name, NodeStageSecretRef: name, NodePublishSecretRef: name, ControllerExpandSecretRef: name, NodeExpandSecretRef: name}
	attached := "pv"
	in := []step.Input{
		step.PodSet{Pod: p}, step.NodeSet{Node: n},
		step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Template: n}}},
		step.DaemonSetSet{DaemonSet: &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "d", Annotations: annotations},
			Spec: appsv1.DaemonSetSpec{Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: p.Spec}}}},
		step.ObjectSet{Object: &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: annotations}}},
		step.ObjectSet{Object: &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: annotations}}},
		step.ObjectSet{Object: volume(v1.PersistentVolumeSource{CSI: csi})},
		step.ObjectSet{Object: volume(v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{SecretRef: name, Options: map[string]string{"key": secret}}})},
		step.ObjectSet{Object: volume(v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "disk", SecretRef: name}})},
		step.ObjectSet{Object: volume(v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{SecretName: secret}})},
		step.ObjectSet{Object: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class", Annotations: annotations},
			Parameters: map[string]string{"secret": secret}, MountOptions: []string{secret}}},
		step.ObjectSet{Object: &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}}},
		step.ObjectSet{Object: &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d", Annotations: annotations},
			Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: secret}}}}},
		step.ObjectSet{Object: &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va", Annotations: annotations},
			Spec:   storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &attached, InlineVolumeSpec: &v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: csi}}}},
			Status: storagev1.VolumeAttachmentStatus{AttachmentMetadata: map[string]string{"key": secret}}}},
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
	if p.Spec.Containers[0].Env == nil || csi.NodeStageSecretRef == nil {
		t.Error("recording has changed the objects themselves")
	}
}
