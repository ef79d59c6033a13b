package cluster

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ResourceID is the dense index of a resource name in a Resources vector.
type ResourceID int32

// The resources every node has. CPU counts milli-CPUs, the others bytes.
// Scalar resources (extended resources, huge pages) follow, in units.
const (
	CPU ResourceID = iota
	Memory
	EphemeralStorage
	firstScalar
)

// Scalar tells whether the resource is one of those beyond CPU, memory and
// ephemeral storage.
func (id ResourceID) Scalar() bool { return id >= firstScalar }

// Resources is a vector of quantities indexed by ResourceID. Entries past its
// length are zero.
type Resources []int64

// At returns the quantity of one resource.
func (r Resources) At(id ResourceID) int64 {
	if int(id) < len(r) {
		return r[id]
	}
	return 0
}

// Set sets the quantity of one resource.
func (r *Resources) Set(id ResourceID, v int64) {
	r.grow(int(id) + 1)
	(*r)[id] = v
}

func (r *Resources) grow(n int) {
	for len(*r) < n {
		*r = append(*r, 0)
	}
}

// add adds o, sign times. Values are capped when parsed (maxQuantity), so a
// sum over the pods of a node can't overflow, and adding is exactly undone by
// subtracting.
func (r *Resources) add(o Resources, sign int64) {
	r.grow(len(o))
	for i, v := range o {
		(*r)[i] += sign * v
	}
}

// Quantities beyond these are capped and reported as a Problem. A pod at the
// cap is larger than a node at the cap, so it fits nowhere, and 1,023 such pods
// on a node still add up within an int64. 2^52 bytes are 4 PiB.
const (
	maxNodeQuantity = 1 << 52
	maxPodQuantity  = 1 << 53
)

// Schema interns names of resources and images. It is shared by all States that share parsed
// objects, and is safe for concurrent use: a follower reads names while its
// leader parses new objects.
type Schema struct {
	mu    sync.RWMutex
	ids   map[v1.ResourceName]ResourceID
	names []v1.ResourceName
	// images are the interned names of container images.
	images map[string]ImageID
}

// NewSchema returns a schema that knows CPU, Memory and EphemeralStorage.
func NewSchema() *Schema {
	s := &Schema{ids: map[v1.ResourceName]ResourceID{}, images: map[string]ImageID{}}
	for _, n := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		s.ID(n)
	}
	return s
}

// ID returns the index of a resource name, interning it when it is new.
func (s *Schema) ID(name v1.ResourceName) ResourceID {
	s.mu.RLock()
	id, ok := s.ids[name]
	s.mu.RUnlock()
	if ok {
		return id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok = s.ids[name]; ok {
		return id
	}
	id = ResourceID(len(s.names))
	s.ids[name] = id
	s.names = append(s.names, name)
	return id
}

// Name returns the resource name of an index.
func (s *Schema) Name(id ResourceID) v1.ResourceName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names[id]
}

// gpus are the resources that Cluster Autoscaler knows as GPUs.
var gpus = [...]v1.ResourceName{"nvidia.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx"}

// GPUOf returns the first resource among them that counts as GPUs, "" for none.
func (s *Schema) GPUOf(r *Resources) v1.ResourceName {
	for _, id := range s.GPUs() {
		if r.At(id) > 0 {
			return s.Name(id)
		}
	}
	return ""
}

// GPUs returns the indices of the resources that count as GPUs, as far as anything has named
// them yet: of the others, nothing has any. The list isn't nil.
func (s *Schema) GPUs() []ResourceID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]ResourceID, 0, len(gpus))
	for _, name := range gpus {
		if id, ok := s.ids[name]; ok {
			out = append(out, id)
		}
	}
	return out
}

// Problem is a value of an API object that can't be taken as it stands.
type Problem struct {
	Field string // path within the object
	Value string // what it says
	Taken string // what Berth takes it for
}

func (p Problem) String() string {
	return fmt.Sprintf("%s is %s, taken as %s", p.Field, p.Value, p.Taken)
}

// quantity converts q into units of the resource (milli-CPU for CPU), capped
// to [0, limit], and appends a Problem when it had to cap.
func quantity(name v1.ResourceName, q resource.Quantity, limit int64, field string, problems *[]Problem) int64 {
	max := limit
	if name == v1.ResourceCPU {
		max = limit / 1000
	}
	if q.Sign() < 0 {
		*problems = append(*problems, Problem{field, q.String(), "0"})
		return 0
	}
	if q.CmpInt64(max) > 0 {
		*problems = append(*problems, Problem{field, q.String(), fmt.Sprint(max)})
		return limit
	}
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}
