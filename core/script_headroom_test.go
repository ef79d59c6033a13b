package core_test

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// This file has the commands of the scripts about headroom:
//
//	template NAME …             a PodTemplate, with the arguments of a pod
//	deployment NAME replicas=N …  with the arguments of a pod for its template
//	buffer NAME [template=NAME | deployment=NAME] [replicas=N] [percentage=N] [cpus=QUANTITY] [strategy=NAME]
//	request NAME template=NAME count=N [atomic] [no-retry] [provisioned=AGO]
//	template-gone NAME | buffer-gone NAME | request-gone NAME
//	written NAME | write-failed NAME    the status of a buffer or request

// headroomInputs returns what such a command feeds to the next Step; nil for another.
func (w *world) headroomInputs(cmd string, args *script.Args) []step.Input {
	gone := func(kind cluster.ObjectKind) []step.Input {
		return []step.Input{step.ObjectGone{Kind: kind, Namespace: "default", Name: args.Name()}}
	}
	set := func(o cluster.Object) []step.Input {
		o.SetNamespace("default")
		o.SetName(args.Name())
		return []step.Input{step.ObjectSet{Object: o}}
	}
	switch cmd {
	case "template":
		return set(&v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Template: w.template(args)})
	case "deployment":
		in := set(&cluster.Scalable{Replicas: int32(args.Int("replicas", 1)), Template: w.template(args)})
		in[0].(step.ObjectSet).Object.SetName(cluster.ScalableName("Deployment", args.Name()))
		return in
	case "buffer":
		return set(w.buffer(args))
	case "request":
		return set(w.request(args))
	case "template-gone":
		return gone(cluster.PodTemplateKind)
	case "buffer-gone":
		return gone(cluster.BufferKind)
	case "request-gone":
		return gone(cluster.ProvisioningRequestKind)
	case "written":
		return statusWritten(args.Name(), nil)
	case "write-failed":
		return statusWritten(args.Name(), errRefused)
	}
	return nil
}

// statusWritten is the outcome of a write of an object that asks for headroom, or of the pod group of that name.
func statusWritten(name string, err error) []step.Input {
	return []step.Input{step.StatusWritten{UID: headroomUID(name), Err: err}, step.StatusWritten{UID: testkit.PodGroup(name, 0, "").UID, Err: err}}
}

// headroomUID is the uid of an object that asks for headroom.
func headroomUID(name string) types.UID { return types.UID("uid-" + name) }

func (w *world) template(args *script.Args) v1.PodTemplateSpec {
	pod := w.pod(args.Name(), args)
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}
}

func (w *world) buffer(args *script.Args) *autoscalingapi.CapacityBuffer {
	b := &autoscalingapi.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{UID: headroomUID(args.Name())}}
	if name := args.String("template", ""); name != "" {
		b.Spec.PodTemplateRef = &autoscalingapi.LocalObjectRef{Name: name}
	}
	if name := args.String("deployment", ""); name != "" {
		b.Spec.ScalableRef = &autoscalingapi.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: name}
	}
	if n := int32(args.Int("replicas", -1)); n >= 0 {
		b.Spec.Replicas = &n
	}
	if n := int32(args.Int("percentage", -1)); n >= 0 {
		b.Spec.Percentage = &n
	}
	if q := args.Quantity("cpus", "0"); q != "0" {
		b.Spec.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse(q)}
	}
	if strategy := args.String("strategy", ""); strategy != "" {
		b.Spec.ProvisioningStrategy = &strategy
	}
	return b
}

func (w *world) request(args *script.Args) *autoscalingapi.ProvisioningRequest {
	r := &autoscalingapi.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{UID: headroomUID(args.Name()), CreationTimestamp: metav1.NewTime(w.now)}}
	r.Spec.ProvisioningClassName = autoscalingapi.CheckCapacity
	if args.Flag("atomic") {
		r.Spec.ProvisioningClassName = autoscalingapi.BestEffortAtomic
	}
	if args.Flag("no-retry") {
		r.Spec.Parameters = map[string]string{autoscalingapi.NoRetry: "true"}
	}
	r.Spec.PodSets = []autoscalingapi.PodSet{{PodTemplateRef: autoscalingapi.LocalObjectRef{Name: args.Required("template")}, Count: int32(args.Int("count", 1))}}
	if ago := args.Duration("provisioned", -1); ago >= 0 {
		r.Status.Conditions = []metav1.Condition{{Type: autoscalingapi.Provisioned, Status: metav1.ConditionTrue, Reason: autoscalingapi.CapacityIsFoundReason, LastTransitionTime: metav1.NewTime(w.now.Add(-ago))}}
	}
	return r
}

// printHeadroom writes what is written of objects that ask for headroom, and what became of
// their stand-ins, of homes, and of consolidations, of which nothing goes out.
func (w *world) printHeadroom(r *step.Ready) {
	out := &w.out
	for _, d := range r.Decisions {
		if d.Headroom != "" || strings.HasPrefix(string(d.Kind), "Home") || strings.HasPrefix(string(d.Kind), "Consolidat") {
			fmt.Fprintf(out, "ledger: %s\n", d.String())
		}
	}
	for _, x := range r.StatusWrites {
		var conditions []metav1.Condition
		switch {
		case x.Buffer != nil:
			conditions = x.Buffer.Conditions
			fmt.Fprintf(out, "status %s replicas %s template %s\n", x.Name, show(x.Buffer.Replicas), showRef(x.Buffer.PodTemplateRef))
		case x.Request != nil:
			fmt.Fprintf(out, "status %s\n", x.Name)
			conditions = x.Request.Conditions
		default:
			fmt.Fprintf(out, "status of pod group %s\n", x.Name)
			conditions = []metav1.Condition{*x.PodGroup}
		}
		for _, c := range conditions {
			fmt.Fprintf(out, "  %s=%s %s at %d: %s\n", c.Type, c.Status, c.Reason, c.LastTransitionTime.Unix(), strings.TrimSpace(c.Message))
		}
	}
}

func show(n *int32) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

func showRef(r *autoscalingapi.LocalObjectRef) string {
	if r == nil {
		return "none"
	}
	return r.Name
}
