package cluster

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// What Berth reads of a Pod. Of a pod that has no node yet it reads all of the
// fields below: they are its class, its gates, what was last written about it.
// Of a pod on a node the rules read less, which is what `same` compares; what
// ParsePod turns into numbers is compared by the numbers, because the status of
// a container that has just started changes and means the same.
//
// What isn't here stays out of memory and recordings: environment variables,
// commands, probes, secrets and where they are mounted, annotations of others.

var podFields = []field[v1.Pod, *Pod]{
	{"metadata", func(to, from *v1.Pod) { to.ObjectMeta = trimMeta(&from.ObjectMeta) }, func(a, b *Pod) bool {
		return a.Object.DeletionTimestamp.Equal(b.Object.DeletionTimestamp)
	}},
	// Only a system pod's age is read.
	{"metadata.creationTimestamp", func(to, from *v1.Pod) {
		if from.Namespace == SystemNamespace {
			to.CreationTimestamp = from.CreationTimestamp
		}
	}, func(a, b *Pod) bool {
		return a.Object.Namespace != SystemNamespace || a.Object.CreationTimestamp.Equal(&b.Object.CreationTimestamp)
	}},
	// Conditions name the version of the spec that they describe.
	{"metadata.generation", func(to, from *v1.Pod) { to.Generation = from.Generation }, nil},
	{"metadata.labels", func(to, from *v1.Pod) { to.Labels = from.Labels }, func(a, b *Pod) bool {
		return maps.Equal(a.Object.Labels, b.Object.Labels)
	}},
	{"metadata.annotations", func(to, from *v1.Pod) { to.Annotations = ourAnnotations(from.Annotations) }, func(a, b *Pod) bool {
		return sameOurs(a.Object.Annotations, b.Object.Annotations)
	}},
	{"metadata.ownerReferences", func(to, from *v1.Pod) { to.OwnerReferences = controller(from.OwnerReferences) }, func(a, b *Pod) bool {
		return sameController(a.Object, b.Object)
	}},
	// Which node a pod is on is the state's to know.
	{"spec.nodeName", func(to, from *v1.Pod) { to.Spec.NodeName = from.Spec.NodeName }, nil},
	{"spec.schedulerName", func(to, from *v1.Pod) { to.Spec.SchedulerName = from.Spec.SchedulerName }, nil},
	{"spec.schedulingGates", func(to, from *v1.Pod) { to.Spec.SchedulingGates = from.Spec.SchedulingGates }, nil},
	{"spec.priority", func(to, from *v1.Pod) { to.Spec.Priority = from.Spec.Priority }, func(a, b *Pod) bool {
		return a.Priority == b.Priority
	}},
	{"spec.preemptionPolicy", func(to, from *v1.Pod) { to.Spec.PreemptionPolicy = from.Spec.PreemptionPolicy }, nil},
	{"spec.nodeSelector", func(to, from *v1.Pod) { to.Spec.NodeSelector = from.Spec.NodeSelector }, nil},
	{"spec.tolerations", func(to, from *v1.Pod) { to.Spec.Tolerations = from.Spec.Tolerations }, nil},
	{"spec.topologySpreadConstraints", func(to, from *v1.Pod) {
		to.Spec.TopologySpreadConstraints = from.Spec.TopologySpreadConstraints
	}, nil},
	{"spec.affinity", func(to, from *v1.Pod) { to.Spec.Affinity = from.Spec.Affinity }, func(a, b *Pod) bool {
		return slices.EqualFunc(a.Terms, b.Terms, sameTerm)
	}},
	{"spec.volumes", func(to, from *v1.Pod) { to.Spec.Volumes = trimVolumes(from.Spec.Volumes, localVolume(from)) }, func(a, b *Pod) bool {
		return slices.Equal(a.Claims, b.Claims) && sameDisks(a.Object.Spec.Volumes, b.Object.Spec.Volumes) &&
			a.Eviction.LocalVolume == b.Eviction.LocalVolume
	}},
	{"spec.terminationGracePeriodSeconds", func(to, from *v1.Pod) {
		if s := from.Spec.TerminationGracePeriodSeconds; s != nil && *s != v1.DefaultTerminationGracePeriodSeconds {
			to.Spec.TerminationGracePeriodSeconds = s
		}
	}, func(a, b *Pod) bool { return a.Eviction.Grace == b.Eviction.Grace }},
	{"spec.activeDeadlineSeconds", func(to, from *v1.Pod) { to.Spec.ActiveDeadlineSeconds = from.Spec.ActiveDeadlineSeconds }, func(a, b *Pod) bool {
		return ptr.Equal(a.Object.Spec.ActiveDeadlineSeconds, b.Object.Spec.ActiveDeadlineSeconds)
	}},
	{"spec.schedulingGroup", func(to, from *v1.Pod) { to.Spec.SchedulingGroup = from.Spec.SchedulingGroup }, func(a, b *Pod) bool {
		return a.PodGroup() == b.PodGroup()
	}},
	{"spec.resourceClaims; status.resourceClaimStatuses, extendedResourceClaimStatus", func(to, from *v1.Pod) {
		to.Spec.ResourceClaims, to.Status.ResourceClaimStatuses = from.Spec.ResourceClaims, from.Status.ResourceClaimStatuses
		to.Status.ExtendedResourceClaimStatus = from.Status.ExtendedResourceClaimStatus
	}, nil},
	// By these NodeDeclaredFeatures tells what the pod needs of a kubelet.
	{"spec.hostNetwork, hostUsers, ephemeralContainers", func(to, from *v1.Pod) {
		to.Spec.HostNetwork, to.Spec.HostUsers = from.Spec.HostNetwork, from.Spec.HostUsers
		for i := range from.Spec.EphemeralContainers {
			if mounts := trimMounts(from.Spec.EphemeralContainers[i].VolumeMounts); mounts != nil {
				to.Spec.EphemeralContainers = append(to.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{VolumeMounts: mounts}})
			}
		}
	}, nil},
	// A resize in place counts by what the node has allocated.
	{"spec.containers, initContainers, resources, overhead; status.containerStatuses, initContainerStatuses, resources, allocatedResources", func(to, from *v1.Pod) {
		to.Spec.InitContainers, to.Spec.Containers = trimContainers(from.Spec.InitContainers), trimContainers(from.Spec.Containers)
		to.Spec.Resources, to.Spec.Overhead = from.Spec.Resources, from.Spec.Overhead
		to.Status.InitContainerStatuses = trimStatuses(from.Status.InitContainerStatuses)
		to.Status.ContainerStatuses = trimStatuses(from.Status.ContainerStatuses)
		trimPodLevelStatus(to, from)
	}, func(a, b *Pod) bool {
		return a.NonZero == b.NonZero && a.Request.Equal(&b.Request) && slices.Equal(a.Ports, b.Ports)
	}},
	{"status.phase", func(to, from *v1.Pod) { to.Status.Phase = from.Status.Phase }, func(a, b *Pod) bool {
		return a.Eviction.Ended == b.Eviction.Ended
	}},
	{"status.nominatedNodeName", func(to, from *v1.Pod) { to.Status.NominatedNodeName = from.Status.NominatedNodeName }, nil},
	{"status.startTime", func(to, from *v1.Pod) { to.Status.StartTime = from.Status.StartTime }, func(a, b *Pod) bool {
		return a.Object.Status.StartTime.Equal(b.Object.Status.StartTime)
	}},
	{"status.conditions", func(to, from *v1.Pod) { to.Status.Conditions = trimConditions(from) }, func(a, b *Pod) bool {
		return disrupted(a.Object) == disrupted(b.Object) && samePendingResize(a.Object, b.Object)
	}},
}

func trimPod(p *v1.Pod) *v1.Pod { return trimBy(podFields, p) }

// SamePod reports whether no rule could tell two versions of a pod on a node
// apart. It doesn't allocate.
func SamePod(a, b *Pod) bool { return sameBy(podFields, a, b) }

// sameTerm compares all that counts of a term: its key has the rest.
func sameTerm(a, b OwnedTerm) bool { return a.Kind == b.Kind && a.Weight == b.Weight && a.Key == b.Key }

// trimContainers keeps what a pod asks for, the images, the rules for
// restarts, and the options of bind mounts. The number of containers counts, too.
func trimContainers(in []v1.Container) []v1.Container {
	if len(in) == 0 {
		return nil
	}
	out := make([]v1.Container, len(in))
	for i := range in {
		c := &in[i]
		out[i] = v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources,
			RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules, VolumeMounts: trimMounts(c.VolumeMounts)}
	}
	return out
}

// trimMounts keeps the options of bind mounts: by them NodeDeclaredFeatures tells what the pod needs.
func trimMounts(in []v1.VolumeMount) (out []v1.VolumeMount) {
	for i := range in {
		if options := in[i].BindMountOptions; len(options) > 0 {
			out = append(out, v1.VolumeMount{BindMountOptions: options})
		}
	}
	return out
}

func trimStatuses(in []v1.ContainerStatus) []v1.ContainerStatus {
	var out []v1.ContainerStatus
	for i := range in {
		if s := &in[i]; s.Resources != nil || s.AllocatedResources != nil { // without, nothing is read of it
			out = append(out, v1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
		}
	}
	return out
}

// trimPodLevelStatus keeps what the node has set up and allocated for the pod as a whole. Without
// the former the latter isn't read.
func trimPodLevelStatus(to, from *v1.Pod) {
	if r := from.Status.Resources; r != nil {
		to.Status.Resources = &v1.ResourceRequirements{Requests: r.Requests}
		to.Status.AllocatedResources = from.Status.AllocatedResources
	}
}

// trimConditions keeps whether the pod is scheduled, unless its node says so, whether it is
// ready, whether somebody has preempted it, and whether a resize of it can't be. Whether it is
// ready the state is told apart (State.SetReady).
func trimConditions(p *v1.Pod) []v1.PodCondition {
	var out []v1.PodCondition
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		switch c.Type {
		case v1.PodReady:
			if c.Status == v1.ConditionTrue {
				out = append(out, v1.PodCondition{Type: c.Type, Status: c.Status})
			}
			continue
		case v1.PodScheduled:
			if p.Spec.NodeName != "" {
				continue
			}
		}
		switch c.Type {
		case v1.PodScheduled: // a condition that is rewritten keeps the time
			out = append(out, v1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		case v1.DisruptionTarget, v1.PodResizePending:
			out = append(out, v1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	return out
}

// disruption is what a pod's condition says about who disrupts it.
type disruption struct {
	status v1.ConditionStatus
	reason string
}

func disrupted(p *v1.Pod) disruption {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.DisruptionTarget {
			return disruption{c.Status, c.Reason}
		}
	}
	return disruption{}
}

// trimVolumes keeps the volumes that rules look at: claims, disks, images, and of the local
// volumes the one that keeps the pod's node.
func trimVolumes(in []v1.Volume, local string) []v1.Volume {
	var out []v1.Volume
	for i := range in {
		v := trimVolume(&in[i])
		if local != "" && in[i].Name == local && onNodesDisk(&in[i]) {
			v.Name, v.EmptyDir, local = local, &v1.EmptyDirVolumeSource{}, ""
		}
		if v.VolumeSource != (v1.VolumeSource{}) {
			out = append(out, v)
		}
	}
	return out
}

func trimVolume(v *v1.Volume) (out v1.Volume) {
	if x := v.PersistentVolumeClaim; x != nil {
		out.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: x.ClaimName}
	}
	if v.Ephemeral != nil { // the claim is named after the volume
		out.Name, out.Ephemeral = v.Name, &v1.EphemeralVolumeSource{}
	}
	if x := v.Image; x != nil {
		out.Image = &v1.ImageVolumeSource{Reference: x.Reference}
	}
	// Disks that attach limits count, or that can't be shared.
	out.GCEPersistentDisk, out.AWSElasticBlockStore = v.GCEPersistentDisk, v.AWSElasticBlockStore
	out.AzureDisk, out.PortworxVolume = v.AzureDisk, v.PortworxVolume
	if x := v.Cinder; x != nil {
		out.Cinder = &v1.CinderVolumeSource{VolumeID: x.VolumeID, FSType: x.FSType, ReadOnly: x.ReadOnly}
	}
	if x := v.ISCSI; x != nil {
		out.ISCSI = &v1.ISCSIVolumeSource{IQN: x.IQN, ReadOnly: x.ReadOnly}
	}
	if x := v.RBD; x != nil {
		out.RBD = &v1.RBDVolumeSource{CephMonitors: x.CephMonitors, RBDPool: x.RBDPool, RBDImage: x.RBDImage, ReadOnly: x.ReadOnly}
	}
	return out
}

// sameDisks reports whether two lists of volumes have the same disks, claims left
// aside. Few pods have any.
func sameDisks(a, b []v1.Volume) bool {
	if !hasDisk(a) && !hasDisk(b) {
		return true
	}
	return equality.Semantic.DeepEqual(trimVolumes(a, ""), trimVolumes(b, ""))
}

func hasDisk(list []v1.Volume) bool {
	for i := range list {
		v := &list[i]
		if v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.AzureDisk != nil || v.PortworxVolume != nil ||
			v.Cinder != nil || v.ISCSI != nil || v.RBD != nil {
			return true
		}
	}
	return false
}
