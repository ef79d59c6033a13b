package drive_test

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has objects that ask for headroom come, change and go in the late world.

// wish names an object that asks for headroom, or that one refers to.
type wish struct {
	kind cluster.ObjectKind
	name string
}

// showWish has the API show an object later, as it is then.
func (w *late) showWish(k wish) {
	w.later(func() {
		if o := w.wishes[k]; o != nil {
			w.put(step.ObjectSet{Object: cluster.Trim(o)})
		} else {
			w.put(step.ObjectGone{Kind: k.kind, Namespace: "default", Name: k.name})
		}
	})
}

// changeHeadroom has a template, a buffer or a request come, change or go.
func (w *late) changeHeadroom() {
	pick := func(from ...string) string { return rapid.SampledFrom(from).Draw(w.t, "of headroom") }
	w.serial++
	var o cluster.Object
	switch pick("template", "buffer", "buffer", "request") {
	case "template":
		pod := testkit.Pod("t").Label("app", pick("web", "db")).Req("cpu", pick("500m", "1500m"), "memory", "1Gi").Obj()
		o = &v1.PodTemplate{Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}}
		o.SetName("t")
	case "buffer":
		n := rapid.Int32Range(0, 4).Draw(w.t, "chunks")
		o = &autoscalingapi.CapacityBuffer{Spec: autoscalingapi.CapacityBufferSpec{PodTemplateRef: &autoscalingapi.LocalObjectRef{Name: "t"}, Replicas: &n}}
		o.SetName(pick("a", "b"))
	default:
		o = &autoscalingapi.ProvisioningRequest{Spec: autoscalingapi.ProvisioningRequestSpec{ProvisioningClassName: pick(autoscalingapi.CheckCapacity, autoscalingapi.BestEffortAtomic),
			PodSets: []autoscalingapi.PodSet{{PodTemplateRef: autoscalingapi.LocalObjectRef{Name: "t"}, Count: rapid.Int32Range(1, 3).Draw(w.t, "pods")}}}}
		o.SetName(pick("r", "s"))
		o.SetCreationTimestamp(metav1.NewTime(w.now))
	}
	k := wish{cluster.KindOf(o), o.GetName()}
	if w.wishes[k] != nil && rapid.IntRange(0, 2).Draw(w.t, "goes") == 0 {
		delete(w.wishes, k)
	} else {
		o.SetNamespace("default")
		o.SetUID(types.UID(fmt.Sprint("wish-", w.serial)))
		if b, ok := w.wishes[k].(*autoscalingapi.CapacityBuffer); ok { // the same one, changed
			o.SetUID(b.UID)
			o.(*autoscalingapi.CapacityBuffer).Status = b.Status
		}
		w.wishes[k] = o
	}
	w.showWish(k)
}

// endRequests deletes all requests.
func (w *late) endRequests() {
	for _, name := range []string{"r", "s"} {
		k := wish{cluster.ProvisioningRequestKind, name}
		delete(w.wishes, k)
		w.showWish(k)
	}
}

func (w *late) WriteStatus(x step.StatusWrite, done func(error)) {
	k := wish{cluster.BufferKind, x.Name}
	if x.Request != nil {
		k.kind = cluster.ProvisioningRequestKind
	}
	w.call("write status", func() error {
		if w.wishes[k] == nil || w.wishes[k].GetUID() != x.UID {
			return errors.New("not found")
		}
		switch o := w.wishes[k].(type) {
		case *autoscalingapi.CapacityBuffer:
			changed := *o
			changed.Status = *x.Buffer
			w.wishes[k] = &changed
		case *autoscalingapi.ProvisioningRequest:
			changed := *o
			changed.Status = *x.Request
			w.wishes[k] = &changed
		}
		w.showWish(k)
		return nil
	}, done)
}
