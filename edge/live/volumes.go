package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/cluster/migration"
)

// volumeBinder makes sure that the claims of a pod are bound before the pod is, as PreBind of
// kube-scheduler's VolumeBinding does: it writes what the decision reserved, then
// waits until the controllers have bound every claim.
type volumeBinder struct {
	client     kubernetes.Interface
	claims     corelisters.PersistentVolumeClaimLister
	volumes    corelisters.PersistentVolumeLister
	nodes      corelisters.NodeLister
	pods       corelisters.PodLister
	csiNodes   storagelisters.CSINodeLister
	period     time.Duration // between two looks at the claims
	beforeLook func()        // for tests: called before each look; may be nil
}

// Its listers read the caches that the core is fed from.
func newVolumeBinder(client kubernetes.Interface, c *caches) *volumeBinder {
	return &volumeBinder{
		client: client, period: time.Second,
		claims:   corelisters.NewPersistentVolumeClaimLister(c.claims.Objects()),
		volumes:  corelisters.NewPersistentVolumeLister(c.volumes.Objects()),
		nodes:    corelisters.NewNodeLister(c.nodes.Objects()),
		pods:     corelisters.NewPodLister(c.pods.Objects()),
		csiNodes: storagelisters.NewCSINodeLister(c.csiNodes.Objects()),
	}
}

// bindClaims writes what the decision reserved and waits until all claims of the pod
// are bound. It fails when somebody else has changed what was to be written, when a
// claim can't be bound on the node any more, when the pod is gone, after bind.Timeout, and
// when the context ends.
// It runs in a worker of the binder, and may take as long as bind.Timeout.
func (b *volumeBinder) bindClaims(ctx context.Context, bind step.Bind) error {
	w := &claimWait{bind: bind, provisioned: map[string]bool{}, reserved: map[string]string{}}
	for _, o := range bind.Writes {
		version, err := b.write(ctx, o)
		if err != nil {
			return fmt.Errorf("reserving volumes: %w", err)
		}
		switch o.(type) {
		case *v1.PersistentVolume:
			w.reserved[o.GetName()] = version
		case *v1.PersistentVolumeClaim:
			w.provisioned[o.GetName()] = true
		}
	}
	// The cache may still show the claims from before the write.
	w.unseen = maps.Clone(w.provisioned)
	err := wait.PollUntilContextTimeout(ctx, b.period, bind.Timeout, true, func(context.Context) (bool, error) {
		return b.allBound(w)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("binding volumes: the claims %v were not bound within %s", bind.Claims, bind.Timeout)
	}
	if err != nil {
		return fmt.Errorf("binding volumes: %w", err)
	}
	return nil
}

// claimWait is a bind that waits for its claims.
type claimWait struct {
	bind        step.Bind
	provisioned map[string]bool // claims that were written: they are to be provisioned for the node
	// unseen are those claims that the cache hasn't shown as they were written yet: until then,
	// that the annotation is missing says nothing.
	unseen   map[string]bool
	reserved map[string]string // volumes that were written, with their resource versions since
}

// write updates an object, and returns its new resource version. A conflict is the
// decision's loss: someone else has changed what it was made on. But if the API has it as it was to be
// written, another pod's bind has written it, or an attempt of this one without an answer.
func (b *volumeBinder) write(ctx context.Context, o cluster.Object) (version string, err error) {
	if version, err = b.update(ctx, o); !apierrors.IsConflict(err) {
		return version, err
	}
	var now cluster.Object
	late := wait.PollUntilContextTimeout(ctx, b.period, conflictShownAfter, true, func(context.Context) (bool, error) {
		now = b.shown(o)
		return now == nil || newer(now, o), nil
	})
	// Who wrote it is told by what is there now, not by the error.
	if late != nil || now == nil || !cluster.ReservesAs(now, o) {
		return "", err
	}
	return now.GetResourceVersion(), nil
}

// conflictShownAfter is for how long the cache may lag behind the version of an object that a write met.
const conflictShownAfter = 10 * time.Second

// shown returns a volume or claim as the cache has it, nil if it hasn't.
// A missing object is no error here.
func (b *volumeBinder) shown(o cluster.Object) cluster.Object {
	switch o.(type) {
	case *v1.PersistentVolume:
		if pv, err := b.volumes.Get(o.GetName()); err == nil {
			return pv
		}
	case *v1.PersistentVolumeClaim:
		if claim, err := b.claims.PersistentVolumeClaims(o.GetNamespace()).Get(o.GetName()); err == nil {
			return claim
		}
	}
	return nil
}

// newer reports whether an object is of a later version than another one.
// Versions that can't be compared count as not newer.
func newer(a, b cluster.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}

// update updates an object, and returns its new resource version.
func (b *volumeBinder) update(ctx context.Context, o cluster.Object) (version string, err error) {
	// Calls without an answer are repeated.
	err = persist(ctx, func() (err error) {
		var written metav1.Object
		switch o := o.(type) {
		case *v1.PersistentVolume:
			written, err = b.client.CoreV1().PersistentVolumes().Update(ctx, o, metav1.UpdateOptions{})
		case *v1.PersistentVolumeClaim:
			written, err = b.client.CoreV1().PersistentVolumeClaims(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
		default:
			return fmt.Errorf("unexpected object of type %T for volumes", o)
		}
		if err == nil {
			version = written.GetResourceVersion()
		}
		return err
	})
	return version, err
}

// allBound reports whether all claims of the pod are bound; an error says that they
// won't be.
func (b *volumeBinder) allBound(w *claimWait) (bool, error) {
	if b.beforeLook != nil {
		b.beforeLook()
	}
	node, err := b.nodes.Get(w.bind.Node)
	if err != nil {
		return false, fmt.Errorf("getting node %q: %w", w.bind.Node, err)
	}
	// A pod that was created anew under the name isn't the one to be bound.
	if pod, err := b.pods.Pods(w.bind.Namespace).Get(w.bind.Name); err != nil || pod.UID != w.bind.UID {
		return false, errors.New("the pod does not exist any more")
	}
	if err := b.stillReserved(w); err != nil {
		return false, err
	}
	csi, err := b.csiNodes.Get(w.bind.Node)
	if err != nil {
		csi = nil
	}
	all := true
	for _, name := range w.bind.Claims {
		bound, err := b.claimBound(w, name, node, csi)
		if err != nil {
			return false, err
		}
		all = all && bound
	}
	return all, nil
}

// stillReserved returns an error if a volume that was reserved isn't any more: a controller has
// reset its claimRef. An older version in the cache says nothing.
func (b *volumeBinder) stillReserved(w *claimWait) error {
	for name, version := range w.reserved {
		pv, err := b.volumes.Get(name)
		if err != nil {
			return fmt.Errorf("getting the reserved volume: %w", err)
		}
		// The cache is behind the write.
		if order, err := resourceversion.CompareResourceVersion(pv.ResourceVersion, version); err != nil || order < 0 {
			continue
		}
		if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
			return fmt.Errorf("ClaimRef got reset for pv %q", name)
		}
	}
	return nil
}

// claimBound reports whether a claim is bound to a volume that the node can use; an error says
// that it won't be.
func (b *volumeBinder) claimBound(w *claimWait, name string, node *v1.Node, csi *storagev1.CSINode) (bool, error) {
	claim, err := b.claims.PersistentVolumeClaims(w.bind.Namespace).Get(name)
	if err != nil {
		return false, err
	}
	selected, annotated := claim.Annotations[cluster.AnnSelectedNode]
	bound := cluster.ClaimBound(claim)
	if annotated && selected == node.Name {
		delete(w.unseen, name)
	}
	// The controller gave up, or another scheduler has chosen a node.
	elsewhere := annotated && selected != node.Name
	taken := !annotated && w.provisioned[name] && !w.unseen[name]
	if !bound && (elsewhere || taken) {
		return false, fmt.Errorf("provisioning for claim %q was given up for node %q", name, node.Name)
	}
	if claim.Spec.VolumeName == "" {
		return bound, nil
	}
	admitted, err := b.admits(claim.Spec.VolumeName, node, csi)
	return bound && admitted, err
}

// admits reports whether a volume, which may have been made just now, is known to be usable
// on the node; an error says that it isn't.
// A volume that was provisioned may be usable elsewhere only.
func (b *volumeBinder) admits(name string, node *v1.Node, csi *storagev1.CSINode) (bool, error) {
	pv, err := b.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return false, nil // not yet: the cache of claims may be ahead
	}
	if err != nil {
		return false, err
	}
	// In-tree volumes are judged as their CSI counterparts.
	x := migration.Translate(pv)
	if pv, err = x.On(csi); err != nil {
		return false, err
	}
	if !cluster.VolumeAdmits(pv, node) {
		return false, fmt.Errorf("pv %q node affinity doesn't match node %q", name, node.Name)
	}
	return true, nil
}
