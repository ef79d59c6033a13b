package charttest

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestProviderAtASocket: with a socket all containers of the pod that talk to the provider mount it, Berth and
// the check connect to it, and no port is left.
func TestProviderAtASocket(t *testing.T) {
	v := map[string]any{"provider": map[string]any{"image": map[string]any{"repository": "provider", "tag": "v1"}, "socket": true, "check": true}}
	objects := byID(rendered(t, v))
	pod := as[appsv1.Deployment](t, objects["Deployment kube-system/berth"]).Spec.Template.Spec
	containers := append(slices.Clone(pod.InitContainers), pod.Containers...)
	if len(containers) != 3 {
		t.Fatalf("the pod has %d containers, want the provider, the check and Berth", len(containers))
	}
	for _, c := range containers {
		if !slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool {
			return m.Name == "provider-socket" && m.MountPath == "/run/berth-provider" && !m.ReadOnly
		}) {
			t.Errorf("container %s doesn't mount the socket's folder: %+v", c.Name, c.VolumeMounts)
		}
	}
	if !slices.Contains(pod.InitContainers[1].Args, "unix:///run/berth-provider/provider.sock") {
		t.Errorf("the check asks %v, want the socket", pod.InitContainers[1].Args)
	}
	if !slices.ContainsFunc(pod.Volumes, func(x v1.Volume) bool { return x.Name == "provider-socket" && x.EmptyDir != nil }) {
		t.Errorf("the pod's volumes are %+v, want one for the socket", pod.Volumes)
	}
	found := false
	for _, o := range objects {
		said := text(t, []*unstructured.Unstructured{o})
		found = found || strings.Contains(said, "address: unix:///run/berth-provider/provider.sock")
		if strings.Contains(said, "localhost:8086") {
			t.Errorf("%s still has the port", id(o))
		}
	}
	if !found {
		t.Error("Berth's configuration doesn't have the socket's address")
	}
}
