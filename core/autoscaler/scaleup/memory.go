package scaleup

import (
	"math"
	"reflect"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// Memory is what a packer remembers from plan to plan: what new nodes look like, which classes
// they take, the classes of pods, and a last plan that bought nothing. Plans are the same with
// it and without, and ask the stopwatch the same questions; so a plan that was cut short while
// it explained goes on in the next.
//
// What is kept of a class and a group is kept only for plain classes (builder.plain), about
// which a node alone has all to say, and while the group's new nodes look the same (modelKey).
// It is two numbers for each pair.
//
// The zero value is ready to use, for one state. It must be Reset when engines forget classes.
type Memory struct {
	signed    uint64 // State.SignatureInputs when classes was begun
	objects   uint64 // State.ReadEverywhere when models was begun
	classes   map[*cluster.Pod]*engine.Class
	readiness autoscaler.Readiness
	daemons   []*cluster.Workload
	models    map[string]*model // by group
	free      []int             // slots that no model has
	slots     int
	pairs     map[*engine.Class]*answers
	whys      []*framework.Reason // by number, from 1
	numbers   map[string]uint16   // of whys, by their messages
	last      *lastPlan
}

// answers are what the rules say about a class and new nodes, by model.slot.
type answers struct {
	fits []int32  // one more than the pods that a node takes; 0: not asked
	whys []uint16 // takesIt, or the number of the reason; 0: not asked
	used bool     // by the present plan
}

// takesIt stands in place of a reason for a node that takes the class.
const takesIt = math.MaxUint16

// maxWhys is how many reasons have numbers at most. Once there are as many, the next plan begins anew.
const maxWhys = takesIt - 1

// maxClassed is how many pods' classes are kept at most.
const maxClassed = 1 << 16

// Reset forgets everything.
func (m *Memory) Reset() { *m = Memory{} }

// modelKey is what a model is made of beside the daemon pods: it is the same model while the
// key is the same.
type modelKey struct {
	template, newest, starting *cluster.NodeInfo
	csi                        *storagev1.CSINode        // of the live node
	promised                   []storagev1.CSINodeDriver // promises.drivers
	devices                    []*devices.Published      // promises.devices
	mirrors                    []*cluster.Pod            // of the live node
}

func (k *modelKey) equal(o *modelKey) bool {
	return k.template == o.template && k.newest == o.newest && k.starting == o.starting && k.csi == o.csi &&
		slices.EqualFunc(k.promised, o.promised, sameDriver) && slices.EqualFunc(k.devices, o.devices, (*devices.Published).Same) && slices.Equal(k.mirrors, o.mirrors)
}

// sameDriver reports whether two drivers attach as many volumes.
func sameDriver(a, b storagev1.CSINodeDriver) bool {
	limit := func(d *storagev1.CSINodeDriver) int64 {
		if d.Allocatable == nil || d.Allocatable.Count == nil {
			return -1
		}
		return int64(*d.Allocatable.Count)
	}
	return a.Name == b.Name && limit(&a) == limit(&b)
}

// begin is called at the beginning of a plan, with its DaemonSets. It forgets what may be
// otherwise in this plan. keep is false when models depend on more than modelKey.
func (m *Memory) begin(s *cluster.State, req *autoscaler.Request, daemons []*cluster.Workload, keep bool) {
	if objects := s.ReadEverywhere(); objects != m.objects {
		m.objects, keep = objects, false // rules may say something else of the same class and model
	}
	if !keep || len(m.whys) == maxWhys || !slices.Equal(m.daemons, daemons) || !reflect.DeepEqual(m.readiness, req.Readiness) {
		m.daemons, m.readiness = daemons, req.Readiness
		m.models, m.pairs, m.free, m.slots, m.whys, m.numbers = nil, nil, nil, 0, nil, nil
	}
	for c, a := range m.pairs {
		if !a.used {
			delete(m.pairs, c)
		}
		a.used = false
	}
	if m.models == nil {
		m.models = map[string]*model{}
	}
}

// keepModels replaces the models by those of a plan. Of groups that are other models now, or
// gone, nothing is known any more.
func (m *Memory) keepModels(now map[string]*model) {
	for id, old := range m.models {
		if now[id] != old {
			m.forgetSlot(old.slot)
		}
	}
	for id, x := range now {
		if m.models[id] != x {
			x.slot = m.takeSlot()
		}
	}
	m.models = now
}

func (m *Memory) takeSlot() int {
	if n := len(m.free); n > 0 {
		slot := m.free[n-1]
		m.free = m.free[:n-1]
		return slot
	}
	m.slots++
	return m.slots - 1
}

func (m *Memory) forgetSlot(slot int) {
	for _, a := range m.pairs {
		if slot < len(a.fits) {
			a.fits[slot], a.whys[slot] = 0, 0
		}
	}
	m.free = append(m.free, slot)
}

// answersFor returns what is known of a class, with an entry for each slot.
func (m *Memory) answersFor(c *engine.Class) *answers {
	a := m.pairs[c]
	if a == nil {
		if m.pairs == nil {
			m.pairs = map[*engine.Class]*answers{}
		}
		a = &answers{}
		m.pairs[c] = a
	}
	a.used = true
	if n := m.slots - len(a.fits); n > 0 {
		a.fits = append(a.fits, make([]int32, n)...)
		a.whys = append(a.whys, make([]uint16, n)...)
	}
	return a
}

// numberOf returns the number of a reason, nil for none; 0 when there are too many to keep.
func (m *Memory) numberOf(why *framework.Reason) uint16 {
	if why == nil {
		return takesIt
	}
	key := strings.Join(why.Messages, "\n")
	n, known := m.numbers[key]
	switch {
	case known:
		return n
	case len(m.whys) == maxWhys:
		return 0
	case m.numbers == nil:
		m.numbers = map[string]uint16{}
	}
	m.whys = append(m.whys, why)
	n = uint16(len(m.whys))
	m.numbers[key] = n
	return n
}

// classOf returns the class of a pod whose terms are known. Pods with claims are signed in
// every plan: what their claims lead to changes as pods are placed.
func (m *Memory) classOf(e *engine.Engine, pod *cluster.Pod) *engine.Class {
	if c, ok := m.classes[pod]; ok {
		return c
	}
	c := e.Class(pod)
	if !e.State().TakesObjects(pod) && len(m.classes) < maxClassed {
		m.classes[pod] = c
	}
	return c
}

// learn records the terms of pods that are to be classified, and forgets classes that may be
// others now.
func (m *Memory) learn(s *cluster.State, pods []*cluster.Pod) {
	for _, pod := range pods {
		if _, ok := m.classes[pod]; !ok {
			s.LearnTerms(pod)
		}
	}
	if now := s.SignatureInputs(); m.classes == nil || now != m.signed || len(m.classes) > 2*len(pods)+1024 {
		m.signed, m.classes = now, map[*cluster.Pod]*engine.Class{}
	}
}
