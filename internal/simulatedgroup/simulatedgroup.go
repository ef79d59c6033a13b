// Package simulatedgroup describes the node groups of a cluster without a cloud: the
// file that lists them, and the nodes of each. The simulated provider creates the nodes in
// a real API, the virtual world in its own; both read the same fields, so that a file means
// the same in both. It draws nothing itself: whoever launches a node draws its luck.
package simulatedgroup

import (
	"fmt"
	"maps"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
)

// GroupLabel is the label of a node that names its group.
const GroupLabel = "berth.dev/node-group"

// APIVersion and Kind are those of a configuration file.
const (
	APIVersion = "berth.dev/v1alpha1"
	Kind       = "SimulatedNodeGroups"
)

// File is a configuration file. Seed decides how long each launch takes and which fail.
type File struct {
	metav1.TypeMeta `json:",inline"`
	Seed            uint64 `json:"seed,omitempty"`
	// Groups are the node groups; names differ.
	Groups []GroupConfig `json:"groups"`
}

// GroupConfig is one node group of a configuration file.
type GroupConfig struct {
	// Name is the group's ID; names of its nodes begin with it.
	Name         string  `json:"name"`
	Min          int     `json:"min,omitempty"`          // the smallest number of nodes, from 0 to max
	Max          int     `json:"max"`                    // the largest number of nodes
	PricePerHour float64 `json:"pricePerHour,omitempty"` // price of one node
	// LaunchDelay is the time from the order to the Node object, Startup the time from
	// the Node object to ready; both are drawn uniformly.
	LaunchDelay Span `json:"launchDelay,omitempty"`
	Startup     Span `json:"startup,omitempty"`
	// FailureRate is the probability, 0 to 1, that a launch fails: no Node object appears.
	FailureRate float64 `json:"failureRate,omitempty"`
	// LaunchesPerSecond limits how fast Node objects appear; 0 for no limit.
	LaunchesPerSecond float64 `json:"launchesPerSecond,omitempty"`
	// Options replace the autoscaler's flags for this group.
	Options *cluster.GroupOptions `json:"options,omitempty"`
	// Template is what each new node is like.
	Template Template `json:"template"`
}

// Span is a range of durations; min is at least 0.
type Span struct {
	Min metav1.Duration `json:"min,omitempty"`
	Max metav1.Duration `json:"max,omitempty"`
}

// Template is what all new nodes of a group have in common.
type Template struct {
	Labels      map[string]string   `json:"labels,omitempty"`
	Annotations map[string]string   `json:"annotations,omitempty"`
	Taints      []v1.Taint          `json:"taints,omitempty"`
	Allocatable v1.ResourceList     `json:"allocatable"`
	Images      []v1.ContainerImage `json:"images,omitempty"`
}

// Load reads and checks a configuration file. Errors name the file, the field
// and what would be accepted.
func Load(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading node groups: %w", err)
	}
	f := &File{}
	if raw, err = yaml.YAMLToJSONStrict(raw); err == nil {
		err = yaml.UnmarshalStrict(door.Readable(raw, f), f)
	}
	if err != nil {
		return nil, fmt.Errorf("reading node groups from %s: %w", path, err)
	}
	door.Object(f)
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("node groups in %s: %w", path, err)
	}
	return f, nil
}

// validate returns the first thing that is wrong, by the order of groups and fields.
func (f *File) validate() error {
	if f.APIVersion != APIVersion || f.Kind != Kind {
		return fmt.Errorf("apiVersion is %q and kind %q; they must be %q and %q", f.APIVersion, f.Kind, APIVersion, Kind)
	}
	if len(f.Groups) == 0 {
		return fmt.Errorf("groups is empty; give at least one group")
	}
	seen := map[string]bool{}
	for i := range f.Groups {
		g := &f.Groups[i]
		group := g.Group()
		if err := group.Validate(); err != nil {
			return fmt.Errorf("groups[%d]: %w", i, err)
		}
		if seen[g.Name] {
			return fmt.Errorf("groups[%d]: name %q is given twice; names must be unique", i, g.Name)
		}
		seen[g.Name] = true
		if err := g.validateLaunches(); err != nil {
			return fmt.Errorf("groups[%d] %q: %w", i, g.Name, err)
		}
	}
	return nil
}

// validateLaunches checks the fields that the autoscaler doesn't see.
func (g *GroupConfig) validateLaunches() error {
	for _, s := range []struct {
		field string
		Span
	}{{"launchDelay", g.LaunchDelay}, {"startup", g.Startup}} {
		if s.Min.Duration < 0 || s.Max.Duration < s.Min.Duration {
			return fmt.Errorf("%s is %s to %s; it must be a range from a minimum of at least 0 to a maximum that is not less", s.field, s.Min.Duration, s.Max.Duration)
		}
	}
	if g.FailureRate < 0 || g.FailureRate > 1 {
		return fmt.Errorf("failureRate is %v; it must be from 0 to 1", g.FailureRate)
	}
	if g.LaunchesPerSecond < 0 {
		return fmt.Errorf("launchesPerSecond is %v; it must not be negative", g.LaunchesPerSecond)
	}
	return nil
}

// Interval returns the time between two of so many a second, one day at most.
func Interval(perSecond float64) time.Duration {
	return time.Duration(min(float64(time.Second)/perSecond, float64(24*time.Hour)))
}

// Group returns the group as the autoscaler sees it, with a target of 0.
func (g *GroupConfig) Group() nodegroup.Group {
	return nodegroup.Group{ID: g.Name, Min: g.Min, Max: g.Max, Price: g.PricePerHour, Options: g.Options, Template: g.NewNode(g.Name + "-template")}
}

// NewNode returns a node of the group that isn't ready yet, as a kubelet registers it. It
// shares no map with the template, but for allocatable and images, which nobody may change.
// The template's labels override those that a kubelet sets.
func (g *GroupConfig) NewNode(name string) *v1.Node {
	n := &v1.Node{}
	n.Name = name
	n.Labels = map[string]string{
		GroupLabel: g.Name, v1.LabelHostname: name,
		v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64",
	}
	maps.Copy(n.Labels, g.Template.Labels)
	n.Annotations = map[string]string{}
	maps.Copy(n.Annotations, g.Template.Annotations)
	n.Spec.Taints = append(n.Spec.Taints, g.Template.Taints...)
	n.Spec.ProviderID = ProviderID(g.Name, name)
	n.Status.Capacity = g.Template.Allocatable
	n.Status.Allocatable = g.Template.Allocatable
	n.Status.Images = g.Template.Images
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: "the simulated node is starting"}}
	return n
}

// ProviderID returns spec.providerID of a node of a group.
func ProviderID(group, node string) string { return "simulated://" + group + "/" + node }

// Between returns the duration at the fraction r of the span: Min for 0, and never quite
// Max when r is drawn from [0, 1).
func (s Span) Between(r float64) time.Duration {
	return s.Min.Duration + time.Duration(r*float64(s.Max.Duration-s.Min.Duration))
}
