package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/controlplane"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth"
)

// TestExampleIsKubeadmsManifest compares examples/kubeadm with what kubeadm makes: image and command
// are exchanged, and what the example says it has more is all that it has more.
func TestExampleIsKubeadmsManifest(t *testing.T) {
	want := controlplane.GetStaticPodSpecs(&kubeadm.ClusterConfiguration{KubernetesVersion: "v1.37.2"}, &kubeadm.APIEndpoint{}, nil)["kube-scheduler"]
	c := &want.Spec.Containers[0]
	c.Image = "berth.local/berth:" + berth.Version()
	c.Command = slices.Concat([]string{"/ko-app/berth", "run", "--leader-elect-resource-name=kube-scheduler"}, c.Command[1:])
	want.Spec.SecurityContext.RunAsUser, want.Spec.SecurityContext.RunAsGroup = ptr.To[int64](0), ptr.To[int64](0)

	raw, err := os.ReadFile(filepath.Join("..", "..", "examples", "kubeadm", "kube-scheduler.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got v1.Pod
	if err := yaml.UnmarshalStrict(raw, &got); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("the example differs from kubeadm's manifest (-want +got):\n%s", diff.Diff(want, got))
	}
}
