package devices

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// node returns a node that is ready since a time.
func node(name string, since time.Time) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)}}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}}
	return n
}

// spec returns what is published of a node, nil for nothing.
func spec(t *testing.T, r *run, name string) *resourcev1.ResourceSliceSpec {
	t.Helper()
	all, err := r.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if all.Items[i].Name == SliceName(name) {
			return &all.Items[i].Spec
		}
	}
	return nil
}

// TestRunPublishesLateChangesAndTaints plays the driver step by step.
func TestRunPublishesLateChangesAndTaints(t *testing.T) {
	start := time.Unix(1000, 0)
	client := fake.NewClientset(node("n0", start))
	d, err := New(client, 2)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Driver: d, o: Options{PerNode: 2, Delay: 10 * time.Second, Changes: time.Minute, Taints: 2 * time.Minute}, published: map[string]bool{},
		nextChange: start.Add(time.Minute), nextTaint: start.Add(2 * time.Minute)}
	at := func(seconds int) *resourcev1.ResourceSliceSpec {
		t.Helper()
		if err := r.step(context.Background(), start.Add(time.Duration(seconds)*time.Second)); err != nil {
			t.Fatal(err)
		}
		return spec(t, r, "n0")
	}
	if s := at(9); s != nil {
		t.Error("devices are published before their time")
	}
	if s := at(10); s == nil || len(s.Devices) != 2 || s.Pool.Generation != 1 || *s.NodeName != "n0" {
		t.Fatalf("at its time the slice is %+v", s)
	}
	if s := at(60); s.Pool.Generation != 2 || *s.Devices[1].Attributes["driverVersion"].VersionValue != "1.1.0" {
		t.Errorf("after a change the slice is %+v", s)
	}
	if s := at(120); len(s.Devices[0].Taints) != 1 || s.Devices[0].Taints[0].Key != Tainted || s.Devices[1].Taints != nil {
		t.Errorf("after the first taint the devices are %+v", s.Devices)
	}
	if s := at(240); s.Devices[0].Taints != nil || len(s.Devices[1].Taints) != 1 {
		t.Errorf("after the second taint the devices are %+v", s.Devices)
	}
	if err := d.Withdraw(t.Context(), "n0"); err != nil || spec(t, r, "n0") != nil {
		t.Errorf("the devices are not taken back: %v", err)
	}
}

// TestOptionsAreRefused: what can't be meant is refused by the name of its flag.
func TestOptionsAreRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"--devices is 65; a node has at most 64":                                     {PerNode: 65},
		"--devices-after, --devices-change and --devices-taint need --devices":       {Delay: time.Second},
		"--devices-after, --devices-change and --devices-taint must not be negative": {PerNode: 1, Taints: -1},
	} {
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v, want %s", o, err, want)
		}
	}
	if err := (Options{PerNode: 8, Delay: time.Minute}).Validate(); err != nil {
		t.Error(err)
	}
}
