package devices

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/api"
)

// Options say what the driver of a cluster does by itself.
type Options struct {
	PerNode int           // devices of each node
	Delay   time.Duration // from a node being ready until its devices are published
	// Changes and Taints are the times between two changes, each of another node: its devices get a new
	// driver version; one of its devices is tainted, and the one before gets well. 0 means never.
	Changes, Taints time.Duration
	// Attached is how many of a node's devices have to be attached, which takes AttachDelay. Of
	// FailEvery of them one can't be; 0 means that all can.
	Attached    int
	AttachDelay time.Duration
	FailEvery   int
	// Serves reports whether a node has devices; nil means all.
	Serves func(*v1.Node) bool
}

// Validate returns an error that names the flag of what can't be meant.
func (o Options) Validate() error {
	if o.PerNode < 0 || o.PerNode > Most {
		return fmt.Errorf("--devices is %d; a node has at most %d", o.PerNode, Most)
	}
	if o.Delay < 0 || o.Changes < 0 || o.Taints < 0 {
		return errors.New("--devices-after, --devices-change and --devices-taint must not be negative")
	}
	if o.PerNode == 0 && (o.Delay > 0 || o.Changes > 0 || o.Taints > 0) {
		return errors.New("--devices-after, --devices-change and --devices-taint need --devices")
	}
	return nil
}

// Run plays the driver until the context ends. failed is told what couldn't be done; the driver goes on.
func Run(ctx context.Context, client kubernetes.Interface, o Options, failed func(error)) error {
	d, err := New(client, o.PerNode)
	if err != nil {
		return err
	}
	d.attached = o.Attached
	if err := d.Install(ctx); err != nil {
		return err
	}
	r := &run{Driver: d, o: o, published: map[string]bool{}, nextChange: time.Now().Add(o.Changes), nextTaint: time.Now().Add(o.Taints)}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := r.step(ctx, time.Now()); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// run is what a driver that goes on by itself remembers.
type run struct {
	*Driver
	o         Options
	published map[string]bool // by the UID of the node
	nodes     []string        // with published devices, in the order of publication

	nextChange, nextTaint time.Time
	changes, taints       int    // so far
	tainted               string // the node with a tainted device, "" for none
	attached              int    // devices that were attached or could not be
}

// step does what is due at a time.
func (r *run) step(ctx context.Context, now time.Time) error {
	nodes, err := api.Nodes(ctx, r.client)
	if err != nil {
		return err
	}
	r.nodes = nil
	for _, n := range nodes {
		since, ready := readySince(n)
		if !ready || now.Sub(since) < r.o.Delay || r.o.Serves != nil && !r.o.Serves(n) {
			continue
		}
		if !r.published[string(n.UID)] {
			if err := r.Publish(ctx, n); err != nil {
				return err
			}
			r.published[string(n.UID)] = true
		}
		r.nodes = append(r.nodes, n.Name)
	}
	if len(r.nodes) == 0 {
		return nil
	}
	if r.o.Attached > 0 {
		if err := r.Attach(ctx, now, r.o.AttachDelay, r.o.FailEvery, &r.attached); err != nil {
			return err
		}
	}
	if r.o.Changes > 0 && !now.Before(r.nextChange) {
		r.nextChange = now.Add(r.o.Changes)
		node := r.nodes[r.changes%len(r.nodes)]
		r.changes++
		if err := r.Upgrade(ctx, node, fmt.Sprintf("1.%d.0", r.changes)); err != nil {
			return err
		}
	}
	if r.o.Taints > 0 && !now.Before(r.nextTaint) {
		r.nextTaint = now.Add(r.o.Taints)
		return r.taintNext(ctx)
	}
	return nil
}

// taintNext makes the tainted device well and taints one of the next node.
func (r *run) taintNext(ctx context.Context) error {
	if r.tainted != "" {
		if err := r.Taint(ctx, r.tainted, r.taints-1, ""); err != nil && !apierrors.IsNotFound(err) { // the node may be gone
			return err
		}
	}
	r.tainted = r.nodes[r.taints%len(r.nodes)]
	r.taints++
	return r.Taint(ctx, r.tainted, r.taints-1, resourcev1.DeviceTaintEffectNoSchedule)
}

// readySince returns since when a node is ready.
func readySince(n *v1.Node) (time.Time, bool) {
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.LastTransitionTime.Time, c.Status == v1.ConditionTrue
		}
	}
	return time.Time{}, false
}
