package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

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
func encode(in step.Input) (input, error) {
	var v any
	switch x := in.(type) {
	case step.PodSet:
		v = step.PodSet{Pod: redactPod(x.Pod)}
	case step.NodeSet:
		n := *x.Node
		n.Annotations = ours(n.Annotations)
		n.ManagedFields = nil
		v = step.NodeSet{Node: &n, Group: x.Group}
	case step.DaemonSetSet:
		d := *x.DaemonSet
		d.Annotations, d.ManagedFields = nil, nil
		d.Spec.Template.Annotations = ours(d.Spec.Template.Annotations)
		redactSpec(&d.Spec.Template.Spec)
		v = step.DaemonSetSet{DaemonSet: &d}
	case step.WorkloadSet:
		w := workload{Kind: x.Workload.Kind, Namespace: x.Workload.Namespace, Name: x.Workload.Name, Set: x.Workload.Set}
		if s := x.Workload.Selector; s != nil {
			_, selectable := s.Requirements()
			w.Selector, w.Nothing = s.String(), !selectable
		}
		v = w
	case step.ObjectSet:
		o, err := redactObject(x.Object)
		if err != nil {
			return input{}, err
		}
		v = o
	case step.Consulted:
		err := x.Err
		x.Err = nil
		v = outcome[step.Consulted]{x, text(err)}
	case step.PlanMade:
		v = nil // the planner makes it again
	case step.BindDone:
		v = outcome[step.BindDone]{step.BindDone{UID: x.UID}, text(x.Err)}
	case step.TaintDone:
		v = outcome[step.TaintDone]{step.TaintDone{Node: x.Node}, text(x.Err)}
	case step.EvictionDone:
		v = outcome[step.EvictionDone]{step.EvictionDone{UID: x.UID, Node: x.Node}, text(x.Err)}
	case step.PreemptionDone:
		v = outcome[step.PreemptionDone]{step.PreemptionDone{UID: x.UID, By: x.By}, text(x.Err)}
	case step.NominationDone:
		v = outcome[step.NominationDone]{step.NominationDone{UID: x.UID, Node: x.Node}, text(x.Err)}
	case step.ScaleUpDone:
		v = outcome[step.ScaleUpDone]{step.ScaleUpDone{Group: x.Group, Nodes: x.Nodes}, text(x.Err)}
	case step.NodeDeletionDone:
		v = outcome[step.NodeDeletionDone]{step.NodeDeletionDone{Node: x.Node, Instance: x.Instance}, text(x.Err)}
	default:
		v = x
	}
	out := input{Kind: strings.TrimPrefix(fmt.Sprintf("%T", in), "step.")}
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
func decode(in input) (step.Input, error) {
	switch in.Kind {
	case "PodSet":
		return plain[step.PodSet](in)
	case "PodGone":
		return plain[step.PodGone](in)
	case "NodeSet":
		return plain[step.NodeSet](in)
	case "NodeGone":
		return plain[step.NodeGone](in)
	case "DaemonSetSet":
		return plain[step.DaemonSetSet](in)
	case "WorkloadGone":
		return plain[step.WorkloadGone](in)
	case "GroupsSet":
		return plain[step.GroupsSet](in)
	case "ObjectGone":
		return plain[step.ObjectGone](in)
	case "ObjectSet":
		return readObject(in)
	case "PlanMade":
		return step.PlanMade{}, nil
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
		return step.WorkloadSet{Workload: out}, nil
	case "BindDone":
		o, err := read[outcome[step.BindDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "Consulted":
		o, err := read[outcome[step.Consulted]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "TaintDone":
		o, err := read[outcome[step.TaintDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "EvictionDone":
		o, err := read[outcome[step.EvictionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "PreemptionDone":
		o, err := read[outcome[step.PreemptionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "NominationDone":
		o, err := read[outcome[step.NominationDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "ScaleUpDone":
		o, err := read[outcome[step.ScaleUpDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "NodeDeletionDone":
		o, err := read[outcome[step.NodeDeletionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	}
	return nil, fmt.Errorf("input %q is unknown; was it recorded by a newer Berth?", in.Kind)
}

func read[T any](in input) (v T, err error) {
	err = json.Unmarshal(in.Value, &v)
	return v, err
}

func plain[T step.Input](in input) (step.Input, error) {
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
		out = append(out, v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources,
			RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules})
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
