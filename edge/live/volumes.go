package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/cluster/migration"
)

// volumes has the claims of pods bound before the pods are, as VolumeBinding's
// PreBind does.
type volumes struct {
	client   kubernetes.Interface
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	nodes    corelisters.NodeLister
	csiNodes storagelisters.CSINodeLister
	period   time.Duration
	asked    func() // for tests: called before each look at the claims
}

func newVolumes(client kubernetes.Interface, f informers.SharedInformerFactory) *volumes {
	return &volumes{
		client: client, period: time.Second,
		claims:   f.Core().V1().PersistentVolumeClaims().Lister(),
		volumes:  f.Core().V1().PersistentVolumes().Lister(),
		nodes:    f.Core().V1().Nodes().Lister(),
		csiNodes: f.Storage().V1().CSINodes().Lister(),
	}
}

// bind writes what the decision reserved and waits until all claims of the pod
// are bound.
func (v *volumes) bind(ctx context.Context, job step.Bind) error {
	for _, o := range job.Writes {
		if err := v.write(ctx, o); err != nil {
			return fmt.Errorf("reserving volumes: %w", err)
		}
	}
	written := map[string]bool{}
	for _, o := range job.Writes {
		if c, ok := o.(*v1.PersistentVolumeClaim); ok {
			written[c.Name] = true
		}
	}
	err := wait.PollUntilContextTimeout(ctx, v.period, job.Timeout, true, func(context.Context) (bool, error) {
		return v.bound(job, written)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("binding volumes: the claims %v were not bound within %s", job.Claims, job.Timeout)
	}
	if err != nil {
		return fmt.Errorf("binding volumes: %w", err)
	}
	return nil
}

// write updates an object. A conflict is the decision's loss: someone else has
// changed what it was made on.
func (v *volumes) write(ctx context.Context, o cluster.Object) error {
	return persist(ctx, func() (err error) {
		switch o := o.(type) {
		case *v1.PersistentVolume:
			_, err = v.client.CoreV1().PersistentVolumes().Update(ctx, o, metav1.UpdateOptions{})
		case *v1.PersistentVolumeClaim:
			_, err = v.client.CoreV1().PersistentVolumeClaims(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
		default:
			return fmt.Errorf("an object of type %T isn't for volumes", o)
		}
		return err
	})
}

// bound tells whether all claims are bound; an error says that they won't be.
// The informer may still show a claim as it was before it was written: until
// its annotation has been seen once, its absence says nothing.
func (v *volumes) bound(job step.Bind, unseen map[string]bool) (bool, error) {
	if v.asked != nil {
		v.asked()
	}
	node, err := v.nodes.Get(job.Node)
	if err != nil {
		return false, fmt.Errorf("getting node %q: %w", job.Node, err)
	}
	csi, err := v.csiNodes.Get(job.Node)
	if err != nil {
		csi = nil
	}
	all := true
	for _, name := range job.Claims {
		claim, err := v.claims.PersistentVolumeClaims(job.Namespace).Get(name)
		if err != nil {
			return false, err
		}
		selected, ok := claim.Annotations[cluster.AnnSelectedNode]
		switch {
		case ok && selected == job.Node:
			delete(unseen, name)
		case ok && selected != job.Node && !cluster.ClaimBound(claim), !ok && writes(job, name) && !unseen[name] && !cluster.ClaimBound(claim):
			return false, fmt.Errorf("provisioning for claim %q was given up for node %q", name, job.Node)
		}
		if claim.Spec.VolumeName != "" {
			if err := v.admits(claim.Spec.VolumeName, node, csi); err != nil {
				return false, err
			}
		}
		all = all && cluster.ClaimBound(claim)
	}
	return all, nil
}

// writes tells whether the claim was to be provisioned for this pod.
func writes(job step.Bind, claim string) bool {
	for _, o := range job.Writes {
		if c, ok := o.(*v1.PersistentVolumeClaim); ok && c.Name == claim {
			return true
		}
	}
	return false
}

// admits checks that a volume, which may have been made just now, can be used
// on the node.
func (v *volumes) admits(name string, node *v1.Node, csi *storagev1.CSINode) error {
	pv, err := v.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil // the informer of claims may be ahead
	}
	if err != nil {
		return err
	}
	if pv, err = migration.Translated(pv, csi); err != nil {
		return err
	}
	if !cluster.VolumeAdmits(pv, &cluster.NodeInfo{Object: node}) {
		return fmt.Errorf("pv %q node affinity doesn't match node %q", name, node.Name)
	}
	return nil
}
