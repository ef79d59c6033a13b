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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/cluster/migration"
)

// volumeBinder has the claims of a pod bound before the pod is, as PreBind of
// kube-scheduler's VolumeBinding does: it writes what the decision reserved, then
// waits until the controllers have bound every claim.
type volumeBinder struct {
	client     kubernetes.Interface
	claims     corelisters.PersistentVolumeClaimLister
	volumes    corelisters.PersistentVolumeLister
	nodes      corelisters.NodeLister
	csiNodes   storagelisters.CSINodeLister
	period     time.Duration // between two looks at the claims
	beforeLook func()        // for tests: called before each look; may be nil
}

func newVolumeBinder(client kubernetes.Interface, c *caches) *volumeBinder {
	return &volumeBinder{
		client: client, period: time.Second,
		claims:   corelisters.NewPersistentVolumeClaimLister(c.claims.Objects()),
		volumes:  corelisters.NewPersistentVolumeLister(c.volumes.Objects()),
		nodes:    corelisters.NewNodeLister(c.nodes.Objects()),
		csiNodes: storagelisters.NewCSINodeLister(c.csiNodes.Objects()),
	}
}

// bindClaims writes what the decision reserved and waits until all claims of the pod
// are bound. It fails when somebody else has changed what was to be written, when a
// claim can't be bound on the node any more, after bind.Timeout, and when the context
// ends.
func (b *volumeBinder) bindClaims(ctx context.Context, bind step.Bind) error {
	for _, o := range bind.Writes {
		if err := b.write(ctx, o); err != nil {
			return fmt.Errorf("reserving volumes: %w", err)
		}
	}
	provisioned := map[string]bool{} // claims that were written
	for _, o := range bind.Writes {
		if c, ok := o.(*v1.PersistentVolumeClaim); ok {
			provisioned[c.Name] = true
		}
	}
	unseen := maps.Clone(provisioned)
	err := wait.PollUntilContextTimeout(ctx, b.period, bind.Timeout, true, func(context.Context) (bool, error) {
		return b.allBound(bind, provisioned, unseen)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("binding volumes: the claims %v were not bound within %s", bind.Claims, bind.Timeout)
	}
	if err != nil {
		return fmt.Errorf("binding volumes: %w", err)
	}
	return nil
}

// write updates an object. A conflict is the decision's loss: someone else has
// changed what it was made on.
func (b *volumeBinder) write(ctx context.Context, o cluster.Object) error {
	return persist(ctx, func() (err error) {
		switch o := o.(type) {
		case *v1.PersistentVolume:
			_, err = b.client.CoreV1().PersistentVolumes().Update(ctx, o, metav1.UpdateOptions{})
		case *v1.PersistentVolumeClaim:
			_, err = b.client.CoreV1().PersistentVolumeClaims(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
		default:
			return fmt.Errorf("unexpected object of type %T for volumes", o)
		}
		return err
	})
}

// allBound reports whether all claims of the pod are bound; an error says that they
// won't be. provisioned are the claims that are to be provisioned for the node. Of
// these, unseen are those that the cache hasn't shown as they were written yet:
// until then, that the annotation is missing says nothing.
func (b *volumeBinder) allBound(bind step.Bind, provisioned, unseen map[string]bool) (bool, error) {
	if b.beforeLook != nil {
		b.beforeLook()
	}
	node, err := b.nodes.Get(bind.Node)
	if err != nil {
		return false, fmt.Errorf("getting node %q: %w", bind.Node, err)
	}
	csi, err := b.csiNodes.Get(bind.Node)
	if err != nil {
		csi = nil
	}
	all := true
	for _, name := range bind.Claims {
		claim, err := b.claims.PersistentVolumeClaims(bind.Namespace).Get(name)
		if err != nil {
			return false, err
		}
		selected, annotated := claim.Annotations[cluster.AnnSelectedNode]
		bound := cluster.ClaimBound(claim)
		if annotated && selected == bind.Node {
			delete(unseen, name)
		}
		elsewhere := annotated && selected != bind.Node
		taken := !annotated && provisioned[name] && !unseen[name]
		if !bound && (elsewhere || taken) {
			return false, fmt.Errorf("provisioning for claim %q was given up for node %q", name, bind.Node)
		}
		if claim.Spec.VolumeName != "" {
			if err := b.admits(claim.Spec.VolumeName, node, csi); err != nil {
				return false, err
			}
		}
		all = all && bound
	}
	return all, nil
}

// admits checks that a volume, which may have been made just now, can be used
// on the node.
func (b *volumeBinder) admits(name string, node *v1.Node, csi *storagev1.CSINode) error {
	pv, err := b.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil // the cache of claims may be ahead
	}
	if err != nil {
		return err
	}
	x := migration.Translate(pv)
	if pv, err = x.On(csi); err != nil {
		return err
	}
	if !cluster.VolumeAdmits(pv, node) {
		return fmt.Errorf("pv %q node affinity doesn't match node %q", name, node.Name)
	}
	return nil
}
