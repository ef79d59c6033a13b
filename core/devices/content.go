package devices

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Content stands for what the library reads of a node's devices: 0 for none. Others are numbered as
// they are met, and never used again.
type Content uint32

// Digest stands for a piece of an object.
type Digest [16]byte

// digest returns what stands for a value, by its JSON, in which maps are sorted.
func digest(x any) Digest {
	raw, err := json.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("devices: an API object that has no JSON: %v", err)) // they all came as such
	}
	return digestBytes(raw)
}

func digestBytes(raw []byte) Digest {
	sum := sha256.Sum256(raw)
	return Digest(sum[:len(Digest{})])
}

// contents numbers what is met.
type contents struct {
	numbers  map[string]Content
	last     Content
	key      []byte
	readings int // see Readings
}

func (c *contents) init() { c.numbers = map[string]Content{} }

// spare is how many contents are kept that no node has any more. What-ifs come and go, and ask
// about the same ones again.
const spare = 1 << 14

// contentOf numbers what the library reads of the pools that a node sees.
func (v *Inventory) contentOf(w *view, n *v1.Node) Content {
	if len(w.pools) == 0 {
		return 0
	}
	v.key = v.key[:0]
	for k := range w.pools {
		v.key = v.read(v.key, &w.pools[k], n)
	}
	if c, ok := v.numbers[string(v.key)]; ok {
		return c
	}
	if len(v.numbers) > spare+2*len(v.views) {
		v.Forget()
	}
	v.last++
	v.numbers[string(v.key)] = v.last
	return v.last
}

// Readings returns how many slices were read to tell contents apart, and how often what is taken of a pool
// was.
func (v *Inventory) Readings() int { return v.readings }

// Forget drops the contents that no node has, and what was answered about them.
func (v *Inventory) Forget() {
	for n := len(v.views); n > 0 && v.views[n-1].pools == nil; n-- {
		v.views = v.views[:n-1]
	}
	live := map[Content]bool{}
	for i := range v.views {
		live[v.views[i].content] = true
	}
	for key, c := range v.numbers {
		if !live[c] {
			delete(v.numbers, key)
		}
	}
	v.memo.keep(live)
}

// Digest stands for what the library reads of a node's devices. Unlike contents it is the same in
// inventories with another past.
func (v *Inventory) Digest(i int32) (d Digest) {
	if int(i) >= len(v.views) || len(v.views[i].pools) == 0 {
		return d
	}
	var key []byte
	v.nodes.DeviceNodes(func(k int32, n *v1.Node) {
		if k == i {
			for k := range v.views[i].pools {
				key = v.read(key, &v.views[i].pools[k], n)
			}
		}
	})
	return digestBytes(key)
}

// read appends what stands for all that the library reads of a pool for a node. It costs O(1) unless
// slices have changed since the last time, or it is the first that asks since something was taken.
func (v *Inventory) read(key []byte, x *seen, n *v1.Node) []byte {
	v.published(x, n)
	if x.taken == nil {
		v.readings++
		d := digestBytes(x.appendTaken(nil))
		x.pool.taken = &d
	}
	key = append(key, x.static[:]...)
	return append(key, x.taken[:]...)
}

// published brings up to date what stands for the slices that a node sees of a pool.
func (v *Inventory) published(x *seen, n *v1.Node) {
	if x.shape != x.pool.shape {
		v.readings += len(x.pool.slices)
		x.static, x.shape = digestBytes(x.pool.appendPublished(nil, n)), x.pool.shape
	}
}

// appendPublished appends what the library reads of a pool's slices for a node, but the names of the pool and
// of the slices: of these it reads the order.
func (p *pool) appendPublished(key []byte, n *v1.Node) []byte {
	key = appendText(key, p.Driver)
	key = binary.AppendUvarint(key, uint64(len(p.slices)))
	for _, s := range p.slices {
		key = append(key, s.digest[:]...)
		key = binary.AppendUvarint(key, uint64(p.age(s)))
		key = append(key, flag(s.matches(n)))
		for i := range s.devices {
			key = append(key, flag(s.devices[i].matches(n)))
		}
	}
	return key
}

// generation is one of a pool, with how many slices are of it.
type generation struct {
	number int64
	slices int
}

// countGeneration counts a slice that was added to a pool (sign is 1), or was taken away (-1).
func (p *pool) countGeneration(s *slice, sign int) {
	at, found := p.generationOf(s)
	if !found {
		p.generations = slices.Insert(p.generations, at, generation{number: s.object.Spec.Pool.Generation})
	}
	if p.generations[at].slices += sign; p.generations[at].slices == 0 {
		p.generations = slices.Delete(p.generations, at, at+1)
	}
}

func (p *pool) generationOf(s *slice) (at int, found bool) {
	return slices.BinarySearchFunc(p.generations, s.object.Spec.Pool.Generation, func(x generation, number int64) int { return cmp.Compare(x.number, number) })
}

// age returns how many generations of the pool are newer than a slice. It costs O(log generations): a driver may
// leave a slice of every generation.
func (p *pool) age(s *slice) (newer int) {
	at, _ := p.generationOf(s)
	return len(p.generations) - 1 - at
}

func appendText(key []byte, s string) []byte {
	key = binary.AppendUvarint(key, uint64(len(s)))
	return append(key, s...)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// digestOf stands for what the library reads of a slice, but its name and generation and the names of
// its pool and node.
func digestOf(o *resourcev1.ResourceSlice) Digest {
	spec := o.Spec
	spec.Pool.Name, spec.Pool.Generation = "", 0
	if spec.NodeName != nil {
		spec.NodeName = new(string)
	}
	return digest(spec)
}

// digests remembers what stands for slices that are in no API: those of nodes that are to come, which share their
// lists of devices by the hundred (Published.On). The lists are never changed.
type digests map[madeSlice]Digest

// madeSlice is what tells two such slices apart.
type madeSlice struct {
	driver   string
	slices   int64              // of the pool
	devices  *resourcev1.Device // the first
	counters *resourcev1.CounterSet
	of       [2]int // how many of both there are
}

// digestsKept is how many of these digests are remembered: each keeps its lists.
const digestsKept = 256

// of returns digestOf of a slice.
func (d digests) of(o *resourcev1.ResourceSlice) Digest {
	s := &o.Spec
	if o.UID != "" || s.NodeName == nil || s.AllNodes != nil || s.NodeSelector != nil || s.PerDeviceNodeSelection != nil {
		return digestOf(o)
	}
	key := madeSlice{driver: s.Driver, slices: s.Pool.ResourceSliceCount, of: [2]int{len(s.Devices), len(s.SharedCounters)}}
	if key.of[0] > 0 {
		key.devices = &s.Devices[0]
	}
	if key.of[1] > 0 {
		key.counters = &s.SharedCounters[0]
	}
	known, ok := d[key]
	if !ok {
		if len(d) >= digestsKept {
			clear(d)
		}
		known = digestOf(o)
		d[key] = known
	}
	return known
}
