package cluster

// This file reads in which topology domains the members of a pod group have to be, or should be.

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TopologyLevelsAnnotation of a PodGroup names further labels of nodes beside the one key of
// spec.schedulingConstraints.topology, outermost first: LABEL=required or LABEL=preferred, with commas between.
const TopologyLevelsAnnotation = "berth.dev/topology-levels"

// maxTopologyLevels is how many levels a group may have.
const maxTopologyLevels = 8

// TopologyLevel is a label that the nodes of all members must have, or should have, with one value.
type TopologyLevel struct {
	Label    string
	Required bool
}

// TopologyLevels returns the levels of a group, outermost first: that of the spec, unless the annotation
// names its key, and those of the annotation. The group may be nil. When the annotation can't be read there
// are none of it, and the error says what is wrong and what to write.
func TopologyLevels(g *schedulingv1beta1.PodGroup) (levels []TopologyLevel, err error) {
	if g == nil {
		return nil, nil
	}
	key := ""
	if c := g.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		key = c.Topology[0].Key
	}
	text, set := g.Annotations[TopologyLevelsAnnotation]
	if set {
		if levels, err = parseTopologyLevels(text, key); err != nil {
			levels = nil
		}
	}
	if key != "" && !slices.Contains(levels, TopologyLevel{key, true}) {
		levels = slices.Insert(levels, 0, TopologyLevel{key, true})
	}
	return levels, err
}

func parseTopologyLevels(text, key string) (levels []TopologyLevel, err error) {
	bad := func(format string, args ...any) ([]TopologyLevel, error) {
		return nil, fmt.Errorf("annotation %s: %s; write LABEL=required or LABEL=preferred for each level, outermost first, with commas between", TopologyLevelsAnnotation, fmt.Sprintf(format, args...))
	}
	for _, part := range strings.Split(text, ",") {
		label, mode, _ := strings.Cut(strings.TrimSpace(part), "=")
		shown := label
		if len(shown) > 100 {
			shown = shown[:100] + "…"
		}
		switch {
		case len(levels) == maxTopologyLevels:
			return bad("there are more than %d levels", maxTopologyLevels)
		case mode != "required" && mode != "preferred":
			return bad("%q isn't required or preferred", shown)
		case len(validation.IsQualifiedName(label)) > 0:
			return bad("%q is no label", shown)
		case slices.ContainsFunc(levels, func(l TopologyLevel) bool { return l.Label == label }):
			return bad("%q is there twice", shown)
		case label == key && mode != "required":
			return bad("%q is required by spec.schedulingConstraints.topology", shown)
		}
		levels = append(levels, TopologyLevel{label, mode == "required"})
	}
	return levels, nil
}

// RequiredTopologies returns the labels of nodes that all members' nodes must have with one value each,
// outermost first. The group may be nil.
func RequiredTopologies(g *schedulingv1beta1.PodGroup) (labels []string) {
	if g == nil || g.Annotations[TopologyLevelsAnnotation] == "" && g.Spec.SchedulingConstraints == nil {
		return nil
	}
	levels, _ := TopologyLevels(g)
	for _, l := range levels {
		if l.Required {
			labels = append(labels, l.Label)
		}
	}
	return labels
}

// RequiredTopology returns the innermost of the labels of RequiredTopologies, "" when the group requires
// none. The group may be nil.
func RequiredTopology(g *schedulingv1beta1.PodGroup) string {
	if labels := RequiredTopologies(g); len(labels) > 0 {
		return labels[len(labels)-1]
	}
	return ""
}

// WithRequiredTopologies returns a copy of a group that requires the given labels, one beside that of its spec
// at least, and prefers none.
func WithRequiredTopologies(g *schedulingv1beta1.PodGroup, labels []string) *schedulingv1beta1.PodGroup {
	out := *g
	var levels []string
	for _, label := range labels {
		if c := g.Spec.SchedulingConstraints; c == nil || len(c.Topology) == 0 || c.Topology[0].Key != label {
			levels = append(levels, label+"=required")
		}
	}
	out.Annotations = map[string]string{TopologyLevelsAnnotation: strings.Join(levels, ",")}
	return &out
}

// DomainOf returns in which domain of some labels together a node with such labels is: their values, outermost
// first, as a/b/c. No value has a slash in it, and an empty one is a value. known is false when a label is missing.
func DomainOf(node map[string]string, labels []string) (domain string, known bool) {
	for i, label := range labels {
		v, has := node[label]
		if !has {
			return "", false
		}
		if i > 0 {
			domain += "/"
		}
		domain += v
	}
	return domain, true
}

// DomainsOf returns the domains of some labels together (DomainOf), sorted, with the nodes that are in each. It
// takes O(nodes), and O(domains) for one label; the lists of nodes are valid until a node changes.
func (s *State) DomainsOf(labels []string) (domains []string, nodes [][]NodeIndex) {
	if len(labels) == 1 {
		return s.Topology(labels[0]).Domains()
	}
	in := map[string][]NodeIndex{}
	s.Nodes(func(n *Node) {
		if domain, known := DomainOf(n.Object.Labels, labels); known {
			in[domain] = append(in[domain], n.Index)
		}
	})
	domains = slices.Sorted(maps.Keys(in))
	for _, domain := range domains {
		nodes = append(nodes, in[domain])
	}
	return domains, nodes
}
