package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
)

// line is one line of a recording: a Step with what went in, or the end.
type line struct {
	Time int64   `json:"t,omitempty"` // unix time in nanoseconds
	In   []input `json:"in,omitempty"`
	End  *end    `json:"end,omitempty"`
}

type end struct {
	Why       string `json:"why"`
	Decisions int    `json:"decisions"`
	Digest    string `json:"digest"`
}

// input is one input under the name of its type.
type input struct {
	Kind  string          `json:"k"`
	Value json.RawMessage `json:"v,omitempty"`
}

// outcome is an input that may carry an error.
type outcome[T any] struct {
	Value T      `json:"of"`
	Err   string `json:"err,omitempty"`
}

// workload is a cluster.Workload without the interface in it.
type workload struct {
	Kind            cluster.WorkloadKind
	Namespace, Name string
	Set             map[string]string `json:",omitempty"`
	Selector        string            `json:",omitempty"`
	Nothing         bool              `json:",omitempty"` // the selector selects nothing
}

// encode writes an input without what isn't Berth's business: environment
// variables, commands, names of secrets, annotations of others.
func encode(in core.Input) (input, error) {
	var v any
	switch x := in.(type) {
	case core.PodSet:
		v = core.PodSet{Pod: redactPod(x.Pod)}
	case core.NodeSet:
		n := *x.Node
		n.Annotations = ours(n.Annotations)
		n.ManagedFields = nil
		v = core.NodeSet{Node: &n, Group: x.Group}
	case core.DaemonSetSet:
		d := *x.DaemonSet
		d.Annotations, d.ManagedFields = nil, nil
		d.Spec.Template.Annotations = ours(d.Spec.Template.Annotations)
		redactSpec(&d.Spec.Template.Spec)
		v = core.DaemonSetSet{DaemonSet: &d}
	case core.WorkloadSet:
		w := workload{Kind: x.Workload.Kind, Namespace: x.Workload.Namespace, Name: x.Workload.Name, Set: x.Workload.Set}
		if s := x.Workload.Selector; s != nil {
			_, selectable := s.Requirements()
			w.Selector, w.Nothing = s.String(), !selectable
		}
		v = w
	case core.ObjectSet:
		o, err := redactObject(x.Object)
		if err != nil {
			return input{}, err
		}
		v = o
	case core.Consulted:
		err := x.Err
		x.Err = nil
		v = outcome[core.Consulted]{x, text(err)}
	case core.PlanMade:
		v = nil // the planner makes it again
	case core.BindDone:
		v = outcome[core.BindDone]{core.BindDone{UID: x.UID}, text(x.Err)}
	case core.TaintDone:
		v = outcome[core.TaintDone]{core.TaintDone{Node: x.Node}, text(x.Err)}
	case core.EvictionDone:
		v = outcome[core.EvictionDone]{core.EvictionDone{UID: x.UID, Node: x.Node}, text(x.Err)}
	case core.PreemptionDone:
		v = outcome[core.PreemptionDone]{core.PreemptionDone{UID: x.UID, By: x.By}, text(x.Err)}
	case core.NominationDone:
		v = outcome[core.NominationDone]{core.NominationDone{UID: x.UID, Node: x.Node}, text(x.Err)}
	case core.ScaleUpDone:
		v = outcome[core.ScaleUpDone]{core.ScaleUpDone{Group: x.Group, Nodes: x.Nodes}, text(x.Err)}
	case core.NodeDeletionDone:
		v = outcome[core.NodeDeletionDone]{core.NodeDeletionDone{Node: x.Node, Instance: x.Instance}, text(x.Err)}
	default:
		v = x
	}
	out := input{Kind: strings.TrimPrefix(fmt.Sprintf("%T", in), "core.")}
	if v == nil {
		return out, nil
	}
	raw, err := json.Marshal(v)
	out.Value = raw
	return out, err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func failure(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// decode reads an input; a PlanMade comes back without its plan.
func decode(in input) (core.Input, error) {
	switch in.Kind {
	case "PodSet":
		return plain[core.PodSet](in)
	case "PodGone":
		return plain[core.PodGone](in)
	case "NodeSet":
		return plain[core.NodeSet](in)
	case "NodeGone":
		return plain[core.NodeGone](in)
	case "DaemonSetSet":
		return plain[core.DaemonSetSet](in)
	case "WorkloadGone":
		return plain[core.WorkloadGone](in)
	case "GroupsSet":
		return plain[core.GroupsSet](in)
	case "ObjectGone":
		return plain[core.ObjectGone](in)
	case "ObjectSet":
		return readObject(in)
	case "PlanMade":
		return core.PlanMade{}, nil
	case "WorkloadSet":
		w := workload{}
		if err := json.Unmarshal(in.Value, &w); err != nil {
			return nil, err
		}
		out := &cluster.Workload{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Set: w.Set}
		switch {
		case w.Nothing:
			out.Selector = labels.Nothing()
		case w.Kind == cluster.ReplicaSet || w.Kind == cluster.StatefulSet:
			s, err := labels.Parse(w.Selector)
			if err != nil {
				return nil, err
			}
			out.Selector = s
		}
		return core.WorkloadSet{Workload: out}, nil
	case "BindDone":
		o, err := read[outcome[core.BindDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "Consulted":
		o, err := read[outcome[core.Consulted]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "TaintDone":
		o, err := read[outcome[core.TaintDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "EvictionDone":
		o, err := read[outcome[core.EvictionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "PreemptionDone":
		o, err := read[outcome[core.PreemptionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "NominationDone":
		o, err := read[outcome[core.NominationDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "ScaleUpDone":
		o, err := read[outcome[core.ScaleUpDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "NodeDeletionDone":
		o, err := read[outcome[core.NodeDeletionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	}
	return nil, fmt.Errorf("input %q is unknown; was it recorded by a newer Berth?", in.Kind)
}

func read[T any](in input) (v T, err error) {
	err = json.Unmarshal(in.Value, &v)
	return v, err
}

func plain[T core.Input](in input) (core.Input, error) {
	v, err := read[T](in)
	return v, err
}

func redactPod(p *v1.Pod) *v1.Pod {
	out := *p
	out.ManagedFields = nil
	out.Annotations = ours(p.Annotations)
	redactSpec(&out.Spec)
	out.Status = v1.PodStatus{Phase: p.Status.Phase, NominatedNodeName: p.Status.NominatedNodeName, Resize: p.Status.Resize,
		ContainerStatuses: allocated(p.Status.ContainerStatuses), InitContainerStatuses: allocated(p.Status.InitContainerStatuses),
		StartTime: p.Status.StartTime, Conditions: conditions(p.Status.Conditions)}
	return &out
}

// allocated keeps the resources of container statuses: an in-place resize
// counts by them.
func allocated(in []v1.ContainerStatus) []v1.ContainerStatus {
	var out []v1.ContainerStatus
	for i := range in {
		out = append(out, v1.ContainerStatus{Name: in[i].Name, AllocatedResources: in[i].AllocatedResources, Resources: in[i].Resources})
	}
	return out
}

func conditions(in []v1.PodCondition) []v1.PodCondition {
	var out []v1.PodCondition
	for _, c := range in {
		out = append(out, v1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	return out
}

func redactSpec(s *v1.PodSpec) {
	s.ImagePullSecrets = nil
	s.InitContainers, s.Containers = redactContainers(s.InitContainers), redactContainers(s.Containers)
	s.EphemeralContainers = nil
	var volumes []v1.Volume
	for _, v := range s.Volumes {
		if v.Secret != nil || v.ConfigMap != nil || v.Projected != nil {
			continue
		}
		volumes = append(volumes, v)
	}
	s.Volumes = volumes
}

func redactContainers(in []v1.Container) []v1.Container {
	var out []v1.Container
	for i := range in {
		c := &in[i]
		out = append(out, v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return out
}

// ours keeps the annotations that Berth may read.
func ours(in map[string]string) map[string]string {
	var out map[string]string
	for k, v := range in {
		if strings.HasPrefix(k, "cluster-autoscaler.kubernetes.io/") || strings.HasPrefix(k, "berth.dev/") || k == v1.MirrorPodAnnotationKey {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
