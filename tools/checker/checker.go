// Package checker verifies placements from API objects alone: that what runs
// on each node was allowed to. It shares no code with the engine or the rules.
package checker

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	corehelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Violation is a pod that must not be where it is.
type Violation struct {
	Pod, Node string
	Rule      string // capacity, pods, ports, taint, affinity, anti-affinity, cordon or node
	Detail    string
}

func (v Violation) String() string {
	return fmt.Sprintf("pod %s on node %s breaks %s: %s", v.Pod, v.Node, v.Rule, v.Detail)
}

// Check returns every violation among the pods that are bound and not over, in
// the order of nodes and pods given. Taints with effect NoSchedule that came
// after the pod are not told apart from earlier ones; leave out what is
// expected with ignoreTaint, which may be nil.
func Check(nodes []*v1.Node, pods []*v1.Pod, ignoreTaint func(v1.Taint) bool) []Violation {
	c := newCheck(nodes, pods)
	c.ignore = ignoreTaint
	for _, n := range nodes {
		c.capacity(n)
		for i, p := range c.on[n.Name] {
			c.alone(n, p)
			for _, q := range c.on[n.Name][:i] {
				c.ports(p, q)
			}
		}
	}
	c.apart()
	return c.found
}

// CheckPods returns the violations that concern the pods named by about: what
// had to hold at the moment of their placement. Pods that were there before
// are taken as they are: a node that has shrunk is nobody's placement.
func CheckPods(nodes []*v1.Node, pods []*v1.Pod, about func(*v1.Pod) bool) []Violation {
	c := newCheck(nodes, pods)
	c.about = about
	for _, n := range nodes {
		for i, p := range c.on[n.Name] {
			if !about(p) {
				continue
			}
			c.capacity(n)
			c.alone(n, p)
			if n.Spec.Unschedulable && !toleratesCordon(p) {
				c.add(p, "cordon", "the node is cordoned")
			}
			for k, q := range c.on[n.Name] {
				if k != i {
					c.ports(p, q)
				}
			}
		}
	}
	c.apart()
	return c.found
}

// Fits tells whether a pod may be placed on a node, beside pods that are
// placed already.
func Fits(pod *v1.Pod, node *v1.Node, nodes []*v1.Node, pods []*v1.Pod) bool {
	placed := *pod
	placed.Spec.NodeName = node.Name
	return len(CheckPods(nodes, append(pods[:len(pods):len(pods)], &placed), func(p *v1.Pod) bool { return p == &placed })) == 0
}

// CheckStanding returns the violations of what holds only as long as no pod has
// left its node: required pod affinity, and hard topology spread among pods that
// all ask for it. Each other rule is for Check.
func CheckStanding(nodes []*v1.Node, pods []*v1.Pod) []Violation {
	c := newCheck(nodes, pods)
	for _, name := range slices.Sorted(maps.Keys(c.on)) {
		for _, p := range c.on[name] {
			if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
				for i := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
					c.together(p, &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
				}
			}
			for i := range p.Spec.TopologySpreadConstraints {
				if s := &p.Spec.TopologySpreadConstraints[i]; s.WhenUnsatisfiable == v1.DoNotSchedule {
					c.spread(p, s)
				}
			}
		}
	}
	return c.found
}

func toleratesCordon(p *v1.Pod) bool {
	return corehelper.TolerationsTolerateTaint(klog.Background(), p.Spec.Tolerations, &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}, false)
}

type check struct {
	ignore func(v1.Taint) bool
	about  func(*v1.Pod) bool // nil for all
	nodes  map[string]*v1.Node
	on     map[string][]*v1.Pod
	found  []Violation
}

func newCheck(nodes []*v1.Node, pods []*v1.Pod) *check {
	c := &check{on: map[string][]*v1.Pod{}, nodes: map[string]*v1.Node{}}
	for _, n := range nodes {
		c.nodes[n.Name] = n
	}
	for _, p := range pods {
		if p.Spec.NodeName == "" || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
			continue
		}
		if c.nodes[p.Spec.NodeName] == nil {
			c.add(p, "node", "there is no such node")
			continue
		}
		c.on[p.Spec.NodeName] = append(c.on[p.Spec.NodeName], p)
	}
	return c
}

func (c *check) add(p *v1.Pod, rule, format string, args ...any) {
	c.found = append(c.found, Violation{p.Namespace + "/" + p.Name, p.Spec.NodeName, rule, fmt.Sprintf(format, args...)})
}

// capacity sums the requests of a node's pods.
func (c *check) capacity(n *v1.Node) {
	pods := c.on[n.Name]
	if len(pods) == 0 {
		return
	}
	sum := v1.ResourceList{}
	for _, p := range pods {
		for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	last := pods[len(pods)-1]
	for name, want := range sum {
		have := n.Status.Allocatable[name]
		if want.Cmp(have) > 0 {
			c.add(last, "capacity", "%d pods request %s of %s, allocatable is %s", len(pods), want.String(), name, have.String())
		}
	}
	allowed := n.Status.Allocatable[v1.ResourcePods]
	if allowed.Cmp(*resource.NewQuantity(int64(len(pods)), resource.DecimalSI)) < 0 {
		c.add(last, "pods", "%d pods on a node that allows %s", len(pods), allowed.String())
	}
}

// alone checks what concerns one pod and its node.
func (c *check) alone(n *v1.Node, p *v1.Pod) {
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); !ok || err != nil {
		c.add(p, "affinity", "node selector or required node affinity doesn't match (%v)", err)
	}
	taint, untolerated := corehelper.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, func(t *v1.Taint) bool {
		return (t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute && c.about != nil) && (c.ignore == nil || !c.ignore(*t))
	}, false)
	if untolerated {
		c.add(p, "taint", "%s isn't tolerated", taint.ToString())
	}
}

func (c *check) ports(p, q *v1.Pod) {
	for _, a := range hostPorts(p) {
		for _, b := range hostPorts(q) {
			anyIP := a.HostIP == "" || a.HostIP == "0.0.0.0" || b.HostIP == "" || b.HostIP == "0.0.0.0"
			if a.HostPort == b.HostPort && protocol(a) == protocol(b) && (anyIP || a.HostIP == b.HostIP) {
				c.add(p, "ports", "host port %d/%s is taken by %s/%s", a.HostPort, protocol(a), q.Namespace, q.Name)
			}
		}
	}
}

func protocol(p v1.ContainerPort) v1.Protocol {
	if p.Protocol == "" {
		return v1.ProtocolTCP
	}
	return p.Protocol
}

func hostPorts(p *v1.Pod) []v1.ContainerPort {
	var out []v1.ContainerPort
	for _, ct := range p.Spec.Containers {
		for _, port := range ct.Ports {
			if port.HostPort > 0 {
				out = append(out, port)
			}
		}
	}
	return out
}

// apart checks required pod anti-affinity, one term of one pod at a time.
func (c *check) apart() {
	for _, name := range slices.Sorted(maps.Keys(c.on)) {
		for _, p := range c.on[name] {
			if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
				continue
			}
			for i := range p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				c.term(p, &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
			}
		}
	}
}

func (c *check) term(p *v1.Pod, term *v1.PodAffinityTerm) {
	domain, ok := c.nodes[p.Spec.NodeName].Labels[term.TopologyKey]
	if !ok {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.on)) {
		if v, ok := c.nodes[name].Labels[term.TopologyKey]; !ok || v != domain {
			continue
		}
		for _, q := range c.on[name] {
			if q.UID == p.UID || !selector.Matches(labels.Set(q.Labels)) || !inNamespaces(p, q, term) {
				continue
			}
			if c.about != nil && !c.about(p) && !c.about(q) {
				continue
			}
			c.add(p, "anti-affinity", "%s/%s matches its term in domain %s=%s", q.Namespace, q.Name, term.TopologyKey, domain)
		}
	}
}

// together checks one required affinity term: another pod that meets it is in the
// domain, or the pod meets its own term and no other pod does anywhere.
func (c *check) together(p *v1.Pod, term *v1.PodAffinityTerm) {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return
	}
	domain, ok := c.nodes[p.Spec.NodeName].Labels[term.TopologyKey]
	elsewhere := ""
	for _, name := range slices.Sorted(maps.Keys(c.on)) {
		for _, q := range c.on[name] {
			if q.UID == p.UID || !selector.Matches(labels.Set(q.Labels)) || !inNamespaces(p, q, term) {
				continue
			}
			if v, has := c.nodes[name].Labels[term.TopologyKey]; ok && has && v == domain {
				return
			}
			elsewhere = q.Namespace + "/" + q.Name
		}
	}
	if elsewhere != "" || !selector.Matches(labels.Set(p.Labels)) {
		c.add(p, "pod affinity", "no pod that it has to be with is in domain %s=%s (%s is elsewhere)", term.TopologyKey, domain, elsewhere)
	}
}

// spread checks one constraint: the pod's domain has at most maxSkew pods more
// than the one with the fewest, of those where the pod may be.
func (c *check) spread(p *v1.Pod, s *v1.TopologySpreadConstraint) {
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		return
	}
	counts := map[string]int{}
	for name, n := range c.nodes {
		domain, ok := n.Labels[s.TopologyKey]
		if !ok {
			continue
		}
		if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !fits {
			continue
		}
		counts[domain] += 0
		for _, q := range c.on[name] {
			if q.Namespace == p.Namespace && q.DeletionTimestamp == nil && selector.Matches(labels.Set(q.Labels)) {
				counts[domain]++
			}
		}
	}
	domain := c.nodes[p.Spec.NodeName].Labels[s.TopologyKey]
	least := counts[domain]
	for _, n := range counts {
		least = min(least, n)
	}
	if s.MinDomains != nil && len(counts) < int(*s.MinDomains) {
		least = 0
	}
	if skew := counts[domain] - least; skew > int(s.MaxSkew) {
		c.add(p, "spread", "domain %s=%s has %d pods, another has %d", s.TopologyKey, domain, counts[domain], least)
	}
}

// inNamespaces resolves a term's namespaces, as far as that takes no Namespace
// objects: a namespaceSelector with requirements matches none here.
func inNamespaces(p, q *v1.Pod, term *v1.PodAffinityTerm) bool {
	if s := term.NamespaceSelector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return true
	}
	if len(term.Namespaces) > 0 {
		return slices.Contains(term.Namespaces, q.Namespace)
	}
	return term.NamespaceSelector == nil && p.Namespace == q.Namespace
}
