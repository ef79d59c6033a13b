package devices

import (
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Question stands for claims, and what their classes say.
type Question uint32

// Answer is whether claims can be allocated on nodes of one content.
type Answer struct {
	Fits  bool
	Score int64 // of the allocation, as Score says
	Uses  []Use // of the units of nodes, when the allocation is packed
	// Failed is set when the library returned an error instead. Its text names claims and nodes, and is
	// found by asking again (Allocate), unless a bound was hit.
	Failed bool
	Over   Excess // which bound was hit, for Excess.Reason
	// Ends is set of an error that has nothing to do with this node alone: kube-scheduler ends the attempt.
	Ends bool
}

// memo remembers the library's answers. Several goroutines may ask.
type memo struct {
	asking      sync.Mutex // guards what follows up to mu, and the values of Inventory.specs
	questions   map[string]Question
	plain       map[string]Digest                  // see digestWanted
	asked       Question                           // the last one
	says        map[*resourcev1.DeviceClass]Digest // see Says
	mu          sync.RWMutex                       // guards the rest
	answers     map[asked]Answer
	takes       map[asked]*Loose // see Take
	allotments  map[allotted]allotment
	counts      map[counted]int64
	asks        int // how often the library was asked
	expressions *cel.Cache
}

type asked struct {
	question Question
	content  Content
	bare     bool // the answer has no Uses, though its question's answers have: the node is in no state
}

// remembered is how many answers are kept at most.
const remembered = 1 << 17

func (m *memo) init() {
	m.questions, m.answers, m.takes, m.allotments = map[string]Question{}, map[asked]Answer{}, map[asked]*Loose{}, map[allotted]allotment{}
	m.plain = map[string]Digest{}
	m.counts, m.says = map[counted]int64{}, map[*resourcev1.DeviceClass]Digest{}
}

// keep drops the answers for contents that are gone, and the questions without an answer.
func (m *memo) keep(live map[Content]bool) {
	m.asking.Lock()
	defer m.asking.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.counts)
	clear(m.says)
	clear(m.plain)
	for a := range m.answers {
		if !live[a.content] {
			delete(m.answers, a)
		}
	}
	for a := range m.takes {
		if !live[a.content] {
			delete(m.takes, a)
		}
	}
	for a := range m.allotments {
		if !live[a.content] {
			delete(m.allotments, a)
		}
	}
	asked := map[Question]bool{}
	for a := range m.answers {
		asked[a.question] = true
	}
	for a := range m.allotments {
		asked[a.question] = true
	}
	for a := range m.takes {
		asked[a.question] = true
	}
	for text, q := range m.questions {
		if !asked[q] {
			delete(m.questions, text) // who has the number keeps it
		}
	}
}

// Question numbers what is signed of claims: two questions of one text are one. It may be called by several
// goroutines.
func (v *Inventory) Question(text []byte) Question {
	v.asking.Lock()
	defer v.asking.Unlock()
	if q, ok := v.questions[string(text)]; ok {
		return q
	}
	if len(v.questions) >= remembered {
		clear(v.questions) // those who have numbers keep them
	}
	v.asked++
	v.questions[string(text)] = v.asked
	return v.asked
}

// Ask returns whether claims can be allocated on a node, which a question stands for. The library is
// asked once for each content; how is the same for all of a question. It may be called by several
// goroutines, for what it returns doesn't depend on who comes first.
func (v *Inventory) Ask(q Question, i int32, n *v1.Node, claims []*resourcev1.ResourceClaim, classes Classes, how How) Answer {
	key := asked{question: q, content: v.Content(i)}
	return v.remember(key, claims, func() ([]resourcev1.AllocationResult, []Use, error) {
		w := v.view(i)
		out, err := v.allocateOnce(q, key.content, w.pools, n, claims, classes, how)
		if !how.Packed {
			return out, nil, err
		}
		return out, w.uses(out), err
	})
}

// remember returns what is known of a question and a content, and asks the library where nothing is.
func (v *Inventory) remember(key asked, claims []*resourcev1.ResourceClaim, allocate func() ([]resourcev1.AllocationResult, []Use, error)) Answer {
	v.mu.RLock()
	a, ok := v.answers[key]
	v.mu.RUnlock()
	if ok {
		return a
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if a, ok := v.answers[key]; ok {
		return a
	}
	out, uses, err := allocate()
	a = Answer{Fits: out != nil, Failed: err != nil, Ends: endsAttempt(err), Uses: uses}
	if over := (*excessError)(nil); errors.As(err, &over) {
		a.Over = over.excess
	}
	for k := range out {
		a.Score += Score(claims[k], &out[k])
	}
	if len(v.answers) >= remembered {
		clear(v.answers)
	}
	v.answers[key] = a
	return a
}

// Asks returns how often the library was asked.
func (v *Inventory) Asks() int { return v.asks }
