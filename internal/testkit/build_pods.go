package testkit

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// More of PodBuilder and NodeBuilder: what tests of single rules need.

// With changes what no other method does.
func (b *PodBuilder) With(change func(*v1.Pod)) *PodBuilder { change(&b.Pod); return b }

// NominatedTo sets status.nominatedNodeName.
func (b *PodBuilder) NominatedTo(node string) *PodBuilder {
	b.Status.NominatedNodeName = node
	return b
}

// Terminating marks the pod as being deleted.
func (b *PodBuilder) Terminating() *PodBuilder {
	b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return b
}

// Started sets status.startTime, in seconds since 1970.
func (b *PodBuilder) Started(at int64) *PodBuilder {
	b.Status.StartTime = &metav1.Time{Time: time.Unix(at, 0)}
	return b
}

// Toleration adds a toleration.
func (b *PodBuilder) Toleration(t v1.Toleration) *PodBuilder {
	b.Spec.Tolerations = append(b.Spec.Tolerations, t)
	return b
}

// Require adds a term to the required node affinity. Terms are alternatives.
func (b *PodBuilder) Require(term v1.NodeSelectorTerm) *PodBuilder {
	a := b.nodeAffinity()
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
	}
	s := a.RequiredDuringSchedulingIgnoredDuringExecution
	s.NodeSelectorTerms = append(s.NodeSelectorTerms, term)
	return b
}

// Prefer adds a term to the preferred node affinity.
func (b *PodBuilder) Prefer(weight int32, term v1.NodeSelectorTerm) *PodBuilder {
	a := b.nodeAffinity()
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	return b
}

// Spread adds a topology spread constraint.
func (b *PodBuilder) Spread(c v1.TopologySpreadConstraint) *PodBuilder {
	b.Spec.TopologySpreadConstraints = append(b.Spec.TopologySpreadConstraints, c)
	return b
}

// Container adds a container with requests, given as name, quantity pairs.
func (b *PodBuilder) Container(pairs ...string) *PodBuilder {
	b.Spec.Containers = append(b.Spec.Containers, container(pairs))
	return b
}

// InitContainer adds an init container with requests.
func (b *PodBuilder) InitContainer(pairs ...string) *PodBuilder {
	b.Spec.InitContainers = append(b.Spec.InitContainers, container(pairs))
	return b
}

// Sidecar adds a restartable init container with requests.
func (b *PodBuilder) Sidecar(pairs ...string) *PodBuilder {
	c := container(pairs)
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	b.Spec.InitContainers = append(b.Spec.InitContainers, c)
	return b
}

func container(pairs []string) v1.Container {
	return v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: quantities(pairs)}}
}

func quantities(pairs []string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// Overhead sets what the pod takes besides its containers.
func (b *PodBuilder) Overhead(pairs ...string) *PodBuilder {
	b.Spec.Overhead = quantities(pairs)
	return b
}

// WholeReq sets requests of the pod as a whole (KEP-2837).
func (b *PodBuilder) WholeReq(pairs ...string) *PodBuilder {
	b.Spec.Resources = &v1.ResourceRequirements{Requests: quantities(pairs)}
	return b
}

// Image sets the image of the first container.
func (b *PodBuilder) Image(name string) *PodBuilder { b.Spec.Containers[0].Image = name; return b }

// Volume adds a volume.
func (b *PodBuilder) Volume(name string, source v1.VolumeSource) *PodBuilder {
	b.Spec.Volumes = append(b.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	return b
}

// Uses adds a volume for each of the claims.
func (b *PodBuilder) Uses(claims ...string) *PodBuilder {
	for _, c := range claims {
		b.Volume(c, v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c}})
	}
	return b
}

// Ephemeral adds a volume whose claim is made for the pod: it is named after the
// pod and the volume.
func (b *PodBuilder) Ephemeral(name string) *PodBuilder {
	return b.Volume(name, v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}})
}

// Unlabel takes a label off the node.
func (b *NodeBuilder) Unlabel(k string) *NodeBuilder { delete(b.Labels, k); return b }

// Images adds an image with its names.
func (b *NodeBuilder) Images(bytes int64, names ...string) *NodeBuilder {
	b.Status.Images = append(b.Status.Images, v1.ContainerImage{Names: names, SizeBytes: bytes})
	return b
}

// Features sets the features that the kubelet declares.
func (b *NodeBuilder) Features(names ...string) *NodeBuilder {
	b.Status.DeclaredFeatures = names
	return b
}

// AffinityTerm adds a required pod affinity term.
func (b *PodBuilder) AffinityTerm(t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAffinity()
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, t)
	return b
}

// AntiAffinityTerm adds a required pod anti-affinity term.
func (b *PodBuilder) AntiAffinityTerm(t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAntiAffinity()
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, t)
	return b
}

// PreferredAffinityTerm adds a preferred pod affinity term.
func (b *PodBuilder) PreferredAffinityTerm(weight int32, t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAffinity()
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	return b
}

// PreferredAntiAffinityTerm adds a preferred pod anti-affinity term.
func (b *PodBuilder) PreferredAntiAffinityTerm(weight int32, t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAntiAffinity()
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	return b
}
