package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// The engine itself: what it holds for one profile, and what it forgets.
//
// Everything here but nextID and evaluated is a cache: an engine made anew over the
// same state gives the same answers.

// Engine finds the best node for classes of pods under one profile.
type Engine struct {
	state   *cluster.State
	profile *framework.Profile
	options Options
	yields  bool // a plugin has victims give back what they have taken (away)

	classes map[string]*Class  // by Class.key
	columns map[string]*column // the shared ones, by what their classes have in common (Engine.sharedColumn)
	sources map[string]*column // of these, those that evaluate the nodes for others, by their local rules
	// privates are the columns that serve one class, and dry the classes that
	// keep what dry runs of preemption have found. Both are sets.
	privates map[*column]bool
	dry      map[*Class]bool
	beside   besides
	byName   int // how many of the classes are judged by name
	nextID   ClassID
	keyBytes int       // the lengths of the keys of classes and of columns
	filled   []*column // the columns that hold something, but for named (filled.go)
	uses     uint64    // of columns and of dry runs: they say which was used last

	evaluated []pluginPods // by plugin of the profile

	// Scratch memory, reused from one question to the next.
	local, group         framework.Signature
	localEnds, groupEnds framework.Signature // see Engine.Class
	columnKey            framework.Signature // see Engine.sharedColumn
	keyBuf               []byte
	admitting            []cluster.HeadroomID
	exceptional          stamps              // nodes that are entries of their own in the view
	nominated            stamps              // of them, those with nominated pods that count for the class
	awaiting             []cluster.NodeIndex // memory of mayAwaitOthers
	view                 view
	scratch              scratch
	named                column // see namedColumn
	namedNodes           []*cluster.Node
	rejected             rejections
	counts               []Count    // scratch of a diagnosis
	touchedFilter        nodeFilter // of helpOnTouched
	fitsFilter           nodeFilter // of FitsBeside
	units                units      // of dry runs
	asked                stamps     // of helpOnTouched: the nodes that were looked at
	overlay              overlay    // of all node filters
}

// Options are the seed, and how answers are found. But for the seed no option
// changes an answer: they are for tests that compare.
type Options struct {
	Seed uint64 // of tie-breaking among equally good nodes
	// Unclassed makes every pod a class of its own.
	Unclassed bool
	// Rebuilt evaluates all nodes anew for every decision, those with nominated pods in what-ifs.
	Rebuilt bool
	// Unhinted has every change wake every class, as if nothing could tell which changes help it.
	Unhinted bool
	// Columns is how many columns are filled at a time at most; 0 for a bound of their memory
	// (filled.go).
	Columns int
	// Workers is how many goroutines evaluate all nodes of a new column. 0 and 1 start
	// none.
	Workers int
}

// New returns an engine over a state. Engines with equal profiles, seeds and
// inputs choose equally. It returns an error when scores by the profile's weights
// might not fit into a key (MaxWeights), or bonuses of its extenders not into
// their limit (MaxExtenderWeights).
func New(state *cluster.State, profile *framework.Profile, options Options) (*Engine, error) {
	if err := checkLimits(profile); err != nil {
		return nil, err
	}
	e := &Engine{
		state: state, profile: profile, options: options, yields: yields(profile),
		classes: map[string]*Class{}, columns: map[string]*column{}, sources: map[string]*column{},
		privates: map[*column]bool{}, dry: map[*Class]bool{},
		evaluated: make([]pluginPods, len(profile.Plugins)),
	}
	// Its groups tell host keys apart, since it is filled for each question anew.
	e.named = column{state: state, options: options, private: true, scratch: &e.scratch}
	state.AddCache(e)
	return e, nil
}

// State returns the state the engine looks at.
func (e *Engine) State() *cluster.State { return e.state }

// Profile returns the engine's rules.
func (e *Engine) Profile() *framework.Profile { return e.profile }

// RolledBack implements cluster.Cache. The order in which caches hear of it doesn't
// matter: none reads another.
func (e *Engine) RolledBack(to cluster.Seq, undone []cluster.Change) {
	for _, c := range e.filled {
		c.rolledBack(to, undone)
	}
	for c := range e.dry {
		c.dry.rolledBack(to, undone)
	}
	e.beside.rolledBack(to, undone)
}

// Size says how much an engine holds.
type Size struct {
	Classes  int // held, by whomever they are needed
	ByName   int // of the classes, those without a column, since they name their nodes
	Columns  int // filled ones: some 40 bytes for each node
	KeyBytes int // what tells classes and columns apart, as long as what their pods ask for
}

// Times returns f times as much.
func (s Size) Times(f float64) Size {
	return Size{int(f * float64(s.Classes)), int(f * float64(s.ByName)), int(f * float64(s.Columns)), int(f * float64(s.KeyBytes))}
}

// Size returns how much the engine holds, in O(1).
func (e *Engine) Size() Size {
	return Size{len(e.classes), e.byName, len(e.filled), e.keyBytes}
}

// Sweep forgets the classes that keep doesn't want, with their facts, and the columns that no class
// uses any more and that are no other column's source, in O(classes + columns). A class that was
// forgotten must not be used again: Engine.Class makes another one for its pods.
func (e *Engine) Sweep(keep func(*Class) bool) {
	used := map[*column]bool{}
	for key, c := range e.classes {
		if keep(c) {
			if c.shared != nil {
				used[c.shared], used[c.shared.evaluator()] = true, true
			}
			continue
		}
		if c.ByName() {
			e.byName--
		}
		for i := range c.prepared {
			e.release(&c.prepared[i])
		}
		e.releaseTopologies(c.topologies)
		e.dropCaches(c)
		delete(e.classes, key)
		e.keyBytes -= len(key)
	}
	for key, col := range e.columns {
		if used[col] {
			continue
		}
		e.releaseTopologies(col.topologies)
		delete(e.columns, key)
		e.keyBytes -= len(key)
		col.empty()
	}
	e.leaveOutEmpty()
	for key, col := range e.sources {
		if !used[col] {
			delete(e.sources, key)
			e.keyBytes -= len(key)
		}
	}
}

func (e *Engine) releaseTopologies(list []*cluster.Topology) {
	for _, t := range list {
		e.state.ReleaseTopology(t)
	}
}

// dropCaches drops what was found out for the class alone.
func (e *Engine) dropCaches(c *Class) {
	e.dropPrivate(c)
	delete(e.dry, c)
	c.dry = nil
	e.beside.forget(c)
}
