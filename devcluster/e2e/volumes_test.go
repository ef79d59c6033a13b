package e2e

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVolumes has claims bound for pods, against the real volume controller: claims that
// take local volumes, and one that is created after its pod and provisioned on the node
// that Berth has chosen; until its volume is there, the pod says where it is expected (KEP-5278).
func TestVolumes(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	startBerth(t, c)
	makeNode(t, client, "n1", "8Gi")
	makeNode(t, client, "n2", "8Gi")
	core, ctx := client.CoreV1(), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	for name, provisioner := range map[string]string{"local": "kubernetes.io/no-provisioner", "made": "csi.example"} {
		_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}, metav1.CreateOptions{})
		must(err)
	}
	volume := func(name, class, node string) *v1.PersistentVolume {
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec = v1.PersistentVolumeSpec{
			Capacity: list("storage", "5Gi"), AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: class,
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}},
		}
		return pv
	}
	claim := func(name, class string) {
		t.Helper()
		pvc := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: name}}
		pvc.Spec = v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: list("storage", "1Gi")}}
		_, err := core.PersistentVolumeClaims(v1.NamespaceDefault).Create(ctx, pvc, metav1.CreateOptions{})
		must(err)
	}
	with := func(name, claim string) *v1.Pod {
		p := pod(name, "1")
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	runs := func(name string) func(context.Context) bool {
		return func(ctx context.Context) bool { return get(ctx, client, name).Status.Phase == v1.PodRunning }
	}
	for _, node := range []string{"n1", "n2"} {
		_, err := core.PersistentVolumes().Create(ctx, volume("local-"+node, "local", node), metav1.CreateOptions{})
		must(err)
	}
	claim("a", "local")
	claim("b", "local")
	create(t, client, with("a", "a"), with("b", "b"), with("late", "late"))
	eventually(t, "both pods with local volumes to run", func(ctx context.Context) bool { return runs("a")(ctx) && runs("b")(ctx) })
	if a, b := get(ctx, client, "a").Spec.NodeName, get(ctx, client, "b").Spec.NodeName; a == b {
		t.Errorf("both pods run on %s, though each node has one volume", a)
	}
	eventually(t, "the third's condition to say that its claim is missing", func(ctx context.Context) bool {
		return strings.Contains(refusal(get(ctx, client, "late")), `persistentvolumeclaim "late" not found`)
	})

	// Berth writes the chosen node to the claim; the test provisions the volume there.
	claim("late", "made")
	var chosen string
	eventually(t, "a node to be chosen for the claim", func(ctx context.Context) bool {
		pvc, err := core.PersistentVolumeClaims(v1.NamespaceDefault).Get(ctx, "late", metav1.GetOptions{})
		if err != nil {
			return false
		}
		chosen = pvc.Annotations["volume.kubernetes.io/selected-node"]
		return chosen != ""
	})
	if p := get(ctx, client, "late"); p.Spec.NodeName != "" {
		t.Errorf("the pod was bound to %s before its claim was", p.Spec.NodeName)
	}
	eventually(t, "the pod to say where it will be, for other autoscalers to know", func(ctx context.Context) bool {
		return get(ctx, client, "late").Status.NominatedNodeName == chosen
	})
	pvc, err := core.PersistentVolumeClaims(v1.NamespaceDefault).Get(ctx, "late", metav1.GetOptions{})
	must(err)
	pv := volume("made", "made", chosen)
	pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID}
	_, err = core.PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	must(err)
	eventually(t, "the pod to run where its volume is", func(ctx context.Context) bool {
		return runs("late")(ctx) && get(ctx, client, "late").Spec.NodeName == chosen
	})
}
