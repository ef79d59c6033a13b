package bench

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file has the pods, volumes and nodes of the cases.

const (
	highPriority    = "bench-high"
	highestPriority = "bench-highest"
	csiDriver       = "ebs.csi.aws.com"
	migrated        = "kubernetes.io/aws-ebs" // the plugin in the tree that this driver took the place of
)

// teamLabel is on the namespaces that pods with a namespace selector look at.
var teamLabel = map[string]string{"team": "devops"}

// requests returns the resources of a container.
func requests(cpu, memory string) v1.ResourceRequirements {
	return v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}}
}

// plain returns the i-th pod of scheduler_perf's basic workload.
func plain(i int) *v1.Pod {
	p := light(i)
	p.Spec.Containers[0].Resources = requests("100m", "500Mi")
	return p
}

// light returns a pod that asks for nothing, and is gone as soon as it is deleted.
func light(i int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%06d", i)},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: new(int64), Containers: []v1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10.1"}}},
	}
}

// low returns a pod of which four fill a node.
func low(i int) *v1.Pod { return sized(plain(i), "900m") }

// urgent returns a pod that takes the place of three of those.
func urgent(i int) *v1.Pod {
	p := sized(plain(i), "3")
	p.Spec.PriorityClassName = highPriority
	return p
}

// huge returns a pod that fits nowhere.
func huge(i int) *v1.Pod {
	p := sized(plain(i), "9")
	p.Spec.PriorityClassName = highPriority
	return p
}

// sized gives a pod another CPU request.
func sized(p *v1.Pod, cpu string) *v1.Pod {
	p.Spec.Containers[0].Resources = requests(cpu, "500Mi")
	return p
}

func millis(n int) string { return fmt.Sprint(n, "m") }

// app gives a pod the label that Services select by.
func app(p *v1.Pod, name string) *v1.Pod {
	p.Labels = map[string]string{"app": name}
	return p
}

func appName(i int) string { return fmt.Sprint("app-", i) }

func apps(n int) (out []string) {
	for i := range n {
		out = append(out, appName(i))
	}
	return out
}

// coloured gives a pod the label that affinities and constraints of these shapes select by.
func coloured(p *v1.Pod, color string) *v1.Pod {
	p.Labels = map[string]string{"color": color}
	return p
}

// zoned returns a pod for two of the three zones.
func zoned(p *v1.Pod) *v1.Pod {
	return nodeAffinity(p, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{
		Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{"zone-0", "zone-1"}}}})
}

// named returns a pod for one node, as those of DaemonSets are.
func named(p *v1.Pod, node string) *v1.Pod {
	return nodeAffinity(p, v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}})
}

func nodeAffinity(p *v1.Pod, term v1.NodeSelectorTerm) *v1.Pod {
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}}
	return p
}

// among says which namespaces a term of pod affinity looks at.
type among func(*v1.PodAffinityTerm)

// measuredAndBeside are the namespace of the measured pods and the one beside it.
func measuredAndBeside(t *v1.PodAffinityTerm) { t.Namespaces = []string{measured, beside} }

// theTeams are the namespaces of the team, which that of the measured pods is one of.
func theTeams(t *v1.PodAffinityTerm) {
	t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: teamLabel}
}

// likeItself returns a term for the pods with the labels of a pod.
func likeItself(p *v1.Pod, topology string, where among) v1.PodAffinityTerm {
	t := v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: topology}
	where(&t)
	return t
}

// apart returns a pod that bears none of its colour on its node.
func apart(p *v1.Pod, color string, where among) *v1.Pod {
	coloured(p, color)
	p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{likeItself(p, v1.LabelHostname, where)}}}
	return p
}

// together returns a pod that has to be in the zone of one of its colour.
func together(p *v1.Pod, color string, where among) *v1.Pod {
	coloured(p, color)
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{likeItself(p, v1.LabelTopologyZone, where)}}}
	return p
}

// liking returns a pod that prefers nodes with pods of its colour.
func liking(p *v1.Pod, color string, where among) *v1.Pod {
	coloured(p, color)
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(likeItself(p, v1.LabelHostname, where))}}
	return p
}

// avoiding returns a pod that prefers nodes without pods of its colour.
func avoiding(p *v1.Pod, color string, where among) *v1.Pod {
	coloured(p, color)
	p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(likeItself(p, v1.LabelHostname, where))}}
	return p
}

func preferred(t v1.PodAffinityTerm) []v1.WeightedPodAffinityTerm {
	return []v1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: t}}
}

// drawn returns a pod that has to be on the node, or in the zone, where one of app-0 is.
func drawn(p *v1.Pod, topology string) *v1.Pod {
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": appName(0)}}, TopologyKey: topology, Namespaces: []string{measured, churning}}}}}
	return p
}

// spread returns a pod that is spread over zones with its like.
func spread(p *v1.Pod, when v1.UnsatisfiableConstraintAction) *v1.Pod {
	coloured(p, "blue")
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	return p
}

// spreadApp returns the i-th of pods ten of which are an app, with a request and a spread of its
// own and two of three sizes of nodes to be on.
func spreadApp(i int) *v1.Pod {
	a := i / 10
	p := app(plain(i), appName(a))
	p.Spec.Containers[0].Resources = requests(millis(300+a%300*4), fmt.Sprintf("%dMi", 1024+a%300*16))
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	return nodeAffinity(p, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{
		Key: sizeLabel, Operator: v1.NodeSelectorOpIn, Values: []string{nodeSizes[a%3], nodeSizes[(a+1)%3]}}}})
}

// including returns a pod that is spread over the nodes whose taints it tolerates.
func including(p *v1.Pod) *v1.Pod {
	coloured(p, "blue")
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		NodeAffinityPolicy: new(v1.NodeInclusionPolicyHonor), NodeTaintsPolicy: new(v1.NodeInclusionPolicyHonor)}}
	return p
}

// gate is the name of the gate of gated pods.
const gate = "example.com/wait"

// gated returns a pod that isn't scheduled until its gate is taken away.
func gated(i int) *v1.Pod {
	p := light(i)
	p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: gate}}
	return p
}

// held returns a pod that stays when it is deleted.
func held(i int) *v1.Pod {
	p := light(i)
	p.Finalizers = []string{"example.com/hold"}
	return p
}

// blocking returns a pod that leaves no room on its node for a pod that is blocked: for every
// other one of these by its request, for the rest by its label.
func blocking(i int) *v1.Pod {
	return coloured(sized(plain(i), []string{"3500m", "100m"}[i%2]), "blocker")
}

// blocked returns a pod that needs a node without any of those.
func blocked(i int) *v1.Pod {
	p := sized(plain(i), "3")
	p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"color": "blocker"}}, TopologyKey: v1.LabelHostname, Namespaces: []string{beforehand}}}}}
	return p
}

func withSecret(p *v1.Pod) *v1.Pod {
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "none"}}}}
	return p
}

// withClaim returns a pod with the claim of its own name.
func withClaim(p *v1.Pod) *v1.Pod {
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name}}}}
	return p
}

func csiVolume(i int) *v1.PersistentVolume {
	return persistent(i, v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: fmt.Sprint("volume-", i)}})
}

func inTreeVolume(i int) *v1.PersistentVolume {
	return persistent(i, v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: fmt.Sprint("volume-", i)}})
}

// persistent returns a volume that exists and is retained, with the name of the i-th pod.
func persistent(i int, source v1.PersistentVolumeSource) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: light(i).Name, Labels: map[string]string{"bench": "yes"}},
		Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany},
			Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}, PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain},
	}
}

// resourceOf is the extended resource that the i-th node has, and the i-th pod asks for.
func resourceOf(i int) v1.ResourceName { return v1.ResourceName(fmt.Sprint("example.com/bar-", i)) }

// asking adds an extended resource, whose limit must equal its request.
func asking(p *v1.Pod, name v1.ResourceName) *v1.Pod {
	r := &p.Spec.Containers[0].Resources
	r.Requests[name] = resource.MustParse("1")
	r.Limits = v1.ResourceList{name: resource.MustParse("1")}
	return p
}

// withResource gives each node a resource of its own, which one pod asks for.
func withResource(i, _ int, n *v1.Node) {
	n.Status.Allocatable[resourceOf(i)] = resource.MustParse("1")
}

func inOneZone(_, _ int, n *v1.Node) { n.Labels[v1.LabelTopologyZone] = "zone-0" }

func cordoned(_, _ int, n *v1.Node) { n.Spec.Unschedulable = true }

// roomyFirst lets the first node take any number of pods.
func roomyFirst(i, _ int, n *v1.Node) {
	if i == 0 {
		n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("200000")
	}
}

// taintedFifth taints every fifth node, so that spreading has to decide whether those count.
func taintedFifth(i, _ int, n *v1.Node) {
	if i%5 == 4 {
		n.Spec.Taints = []v1.Taint{{Key: "foo", Effect: v1.TaintEffectNoSchedule}}
	}
}

// mixed returns pods of eight apps in turn, each app with a shape of its own.
func mixed(i int) *v1.Pod {
	p := app(plain(i), appName(i%8))
	selector := &metav1.LabelSelector{MatchLabels: p.Labels}
	switch i % 8 {
	case 1:
		p = zoned(p)
	case 2: // one pod in forty: with more there would be too few nodes
		if i%40 == 2 {
			p = apart(p, "red", measuredAndBeside)
		}
	case 3:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selector}}
	case 4:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{
			Weight: 10, PodAffinityTerm: v1.PodAffinityTerm{LabelSelector: selector, TopologyKey: v1.LabelTopologyZone}}}}}
	case 5:
		p.Spec.Containers[0].Resources = requests("250m", "1Gi")
	case 6:
		p.Spec.PriorityClassName = highPriority
	}
	return p
}
