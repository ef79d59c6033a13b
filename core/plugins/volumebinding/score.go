package volumebinding

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file scores nodes by the storage that a pod's delayed claims would take there, compared with
// what there is (KEP-4049). Bound claims don't count: their volumes are the same on every node.

// DefaultShape is kube-scheduler's: the more storage is left, the better.
func DefaultShape() []framework.ShapePoint {
	return []framework.ShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}
}

// storage is what the claims of one storage class take.
type storage struct {
	class               string
	requested, capacity int64 // in bytes
}

// utilization returns the part that is taken, in percent: 100 where nothing is known to be there.
func (s *storage) utilization() int64 {
	if s.capacity == 0 || s.requested > s.capacity {
		return 100
	}
	return s.requested * 100 / s.capacity
}

// taken is the storage of several classes, each once.
type taken []storage

// of returns the entry of a class, a new one where there is none. It is valid until the next call.
func (t *taken) of(class string) *storage {
	for i := range *t {
		if (*t)[i].class == class {
			return &(*t)[i]
		}
	}
	*t = append(*t, storage{class: class})
	return &(*t)[len(*t)-1]
}

// score returns the mean score of the storage classes, 0 where the volumes that a pod gets on a node
// say nothing about storage. Where there are volumes to bind, those to provision don't count.
func score(f *finding, curve framework.Curve) int64 {
	var few [4]storage
	all := taken(few[:0])
	for _, b := range f.bindings {
		s := all.of(b.volume.Spec.StorageClassName)
		s.requested += sizeOf(b.claim.Spec.Resources.Requests)
		s.capacity += sizeOf(b.volume.Spec.Capacity)
	}
	if len(f.bindings) == 0 {
		for _, p := range f.provisions {
			if p.from == nil {
				continue
			}
			s := all.of(scoredClass(p.claim))
			s.requested += sizeOf(p.claim.Spec.Resources.Requests)
			s.capacity = bytes(p.from.Capacity) // all claims of the class take of the same
		}
	}
	if len(all) == 0 {
		return 0
	}
	var sum int64
	for i := range all {
		sum += curve.At(all[i].utilization())
	}
	return int64(math.Round(float64(sum) / float64(len(all))))
}

// scoredClass returns the storage class under which a claim is scored: that of its spec, even where
// an annotation has another.
func scoredClass(c *v1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return cluster.ClaimClass(c)
}

// sizeOf returns the storage in a list of resources, in bytes.
func sizeOf(list v1.ResourceList) int64 {
	q := list[v1.ResourceStorage]
	return q.Value()
}

// bytes returns a quantity that may be missing.
func bytes(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}
