package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/compat"
)

// Names of resources are not interned. Anybody who may create pods may invent names without
// end, so a name costs memory only where it stands: in the vectors of the pods that request
// it, of the nodes that have it or that such pods are on, and in what is made of those.

// ResourceID identifies a resource by its name: equal names have equal IDs, in all states.
// The zero value is CPU.
type ResourceID struct {
	index  int             // in Resources.common; 0 for a scalar resource
	scalar v1.ResourceName // "" for those of Resources.common
}

// The resources every node has. CPU counts milli-CPUs, the others bytes. Scalar resources
// (extended resources, huge pages) are in units.
var (
	CPU              = ResourceID{index: 0}
	Memory           = ResourceID{index: 1}
	EphemeralStorage = ResourceID{index: 2}
)

// commonNames are the names of the resources that every node has, by their index.
var commonNames = [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}

// ResourceOf returns the ID of a resource.
func ResourceOf(name v1.ResourceName) ResourceID {
	if i := slices.Index(commonNames[:], name); i >= 0 {
		return ResourceID{index: i}
	}
	return ResourceID{scalar: name}
}

// Name returns the resource's name.
func (id ResourceID) Name() v1.ResourceName {
	if id.Scalar() {
		return id.scalar
	}
	return commonNames[id.index]
}

// Scalar reports whether the resource is one of those beyond CPU, memory and
// ephemeral storage.
func (id ResourceID) Scalar() bool { return id.scalar != "" }

// Compare orders resources: CPU, memory and ephemeral storage first, the others by name.
func (id ResourceID) Compare(o ResourceID) int {
	return cmp.Or(strings.Compare(string(id.scalar), string(o.scalar)), cmp.Compare(id.index, o.index))
}

// Resources is a vector of quantities. The zero value is all zero. A copy shares memory with
// what it was copied from: only one of the two may be changed, unless it was made by Clone.
//
// Invariant: scalars is nil or points to a list that is sorted by name, has no quantity of 0, and
// isn't empty. It is a pointer, since each node has two vectors that are fetched at each look.
type Resources struct {
	common  [len(commonNames)]int64
	scalars *[]amount
}

// list returns the scalar resources.
func (r *Resources) list() []amount {
	if r.scalars == nil {
		return nil
	}
	return *r.scalars
}

// setList replaces the scalar resources.
func (r *Resources) setList(list []amount) {
	if r.scalars = nil; len(list) > 0 {
		r.scalars = &list
	}
}

// amount is the quantity of one scalar resource.
type amount struct {
	name  v1.ResourceName
	value int64
}

// At returns the quantity of one resource, in O(log scalar resources).
func (r *Resources) At(id ResourceID) int64 {
	if id.scalar == "" {
		return r.common[id.index]
	}
	return r.scalar(id.scalar)
}

// CPU and Memory return what At returns of these, at once.
func (r *Resources) CPU() int64    { return r.common[0] }
func (r *Resources) Memory() int64 { return r.common[1] }

// scalar returns the quantity of a scalar resource. It isn't inlined so that At is.
//
//go:noinline
func (r *Resources) scalar(name v1.ResourceName) int64 {
	if at, ok := r.find(name); ok {
		return r.list()[at].value
	}
	return 0
}

// find returns the position of a scalar resource, or where it belongs. Most vectors have one
// or none.
func (r *Resources) find(name v1.ResourceName) (at int, ok bool) {
	list := r.list()
	if len(list) == 1 && list[0].name == name {
		return 0, true
	}
	return slices.BinarySearchFunc(list, name, func(a amount, name v1.ResourceName) int { return strings.Compare(string(a.name), string(name)) })
}

// Set sets the quantity of one resource.
func (r *Resources) Set(id ResourceID, v int64) {
	if id.scalar == "" {
		r.common[id.index] = v
		return
	}
	at, ok := r.find(id.scalar)
	switch {
	case ok && v != 0:
		r.list()[at].value = v
	case ok:
		r.setList(slices.Delete(r.list(), at, at+1))
	case v != 0:
		r.setList(slices.Insert(r.list(), at, amount{id.scalar, v}))
	}
}

// Add adds o, so many times. Values are capped when parsed (maxQuantity), so a
// sum over the pods of a node can't overflow, and adding is exactly undone by
// subtracting. It takes O(scalar resources of both) at most.
func (r *Resources) Add(o *Resources, times int64) {
	for i, v := range o.common {
		r.common[i] += times * v
	}
	more := o.list()
	if len(more) > 4 { // inserting one by one would take O(r × o)
		r.merge(more, times)
		return
	}
	for _, a := range more {
		id := ResourceID{scalar: a.name}
		r.Set(id, r.At(id)+times*a.value)
	}
}

// merge adds scalar resources, so many times, to a list that is made anew.
func (r *Resources) merge(more []amount, times int64) {
	old := r.list()
	out := make([]amount, 0, len(old)+len(more))
	for len(old) > 0 || len(more) > 0 {
		var next amount
		switch {
		case len(more) == 0 || len(old) > 0 && old[0].name < more[0].name:
			next, old = old[0], old[1:]
		case len(old) == 0 || more[0].name < old[0].name:
			next, more = amount{more[0].name, times * more[0].value}, more[1:]
		default:
			next, old, more = amount{old[0].name, old[0].value + times*more[0].value}, old[1:], more[1:]
		}
		if next.value != 0 {
			out = append(out, next)
		}
	}
	r.setList(slices.Clip(out))
}

// All yields the resources of which there is a quantity other than 0, in the order of
// ResourceID.Compare.
func (r *Resources) All() iter.Seq2[ResourceID, int64] {
	return func(yield func(ResourceID, int64) bool) {
		for i, v := range r.common {
			if v != 0 && !yield(ResourceID{index: i}, v) {
				return
			}
		}
		for _, a := range r.list() {
			if !yield(ResourceID{scalar: a.name}, a.value) {
				return
			}
		}
	}
}

// Clone returns a copy that shares no memory.
func (r *Resources) Clone() Resources {
	out := Resources{common: r.common}
	if r.scalars != nil { // or setList would allocate
		out.setList(slices.Clone(*r.scalars))
	}
	return out
}

// Equal reports whether all quantities are equal. It doesn't allocate.
func (r *Resources) Equal(o *Resources) bool {
	return r.common == o.common && slices.Equal(r.list(), o.list())
}

// String lists the quantities with the names, for people.
func (r Resources) String() string {
	var out []string
	for id, v := range r.All() {
		out = append(out, fmt.Sprintf("%s=%d", id.Name(), v))
	}
	return strings.Join(out, " ")
}

// Quantities beyond these are capped and reported as a Problem. A pod at the
// cap is larger than a node at the cap, so it fits nowhere, and 1,023 such pods
// on a node still add up within an int64. 2^52 bytes are 4 PiB.
const (
	maxNodeQuantity = 1 << 52
	maxPodQuantity  = 1 << 53
)

// Schema parses objects for all States that share them, as a version of Kubernetes reads them. It
// remembers nothing of them.
type Schema struct {
	version compat.Version
	// selectsAll reports whether the namespaceSelector of an affinity term selects every namespace,
	// known or not.
	selectsAll func(labels.Selector) bool
	// requestsOnNode returns what a pod on a node requests, with defaults for what its containers
	// don't request.
	requestsOnNode func(p *v1.Pod, defaults v1.ResourceList) v1.ResourceList
}

// NewSchema returns a schema of the newest version.
func NewSchema() *Schema { return SchemaFor(compat.Newest) }

// SchemaFor returns a schema of a version.
func SchemaFor(v compat.Version) *Schema {
	s := &Schema{version: v, selectsAll: labels.Selector.Empty, requestsOnNode: requestsByPod}
	if v < compat.V37 {
		s.selectsAll, s.requestsOnNode = matchesNoLabels, requestsByContainer
	}
	return s
}

// Version returns the version whose rules apply: constructors of rules read it.
func (s *Schema) Version() compat.Version { return s.version }

// GPUs returns the resources that Cluster Autoscaler knows as GPUs.
func GPUs() [5]ResourceID {
	return [...]ResourceID{{scalar: "nvidia.com/gpu"}, {scalar: "habana.ai/gaudi"}, {scalar: "gpu.intel.com/xe"}, {scalar: "amd.com/gpu"}, {scalar: "microsoft.com/directx"}}
}

// GPUOf returns the first resource of a vector that counts as GPUs, "" for none.
func GPUOf(r *Resources) v1.ResourceName {
	for _, id := range GPUs() {
		if r.At(id) > 0 {
			return id.Name()
		}
	}
	return ""
}

// Problem is a value of an API object that can't be taken as it stands.
type Problem struct {
	Field string // path within the object
	Value string // what it says
	Taken string // what Berth takes it for
}

func (p Problem) String() string {
	return fmt.Sprintf("%s is %s, treated as %s", p.Field, p.Value, p.Taken)
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
