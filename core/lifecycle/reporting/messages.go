package reporting

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
)

const (
	// refreshEvery is how often messages are refreshed at most. It costs O(nodes) for
	// each waiting class.
	refreshEvery = 10 * time.Second
	// classesPerStep is how many classes one Step refreshes: decisions mustn't wait.
	classesPerStep = 4
	// RefreshedPods is for how many pods of a class a refreshed message is written, by a
	// core that writes conditions.
	RefreshedPods = 100
)

// messages keeps what the pods of waiting classes say up to date.
type messages struct {
	scheduler    Scheduler
	podsPerClass int
	outdated     bool            // nodes have changed since the last refresh began
	since        time.Time       // when the last refresh began
	left         []*engine.Class // whose turn in it is yet to come
	putOff       time.Time       // when the first text is due that the last refresh has put off; zero for none
	advanced     time.Time       // when advance last ran
	anyWaits     bool            // a class waited then; without one, nothing is refreshed
}

// NodesChanged records changes of the cluster: those of nodes make messages
// outdated.
func (m *Machine) NodesChanged(changes []cluster.Change) {
	for i := range changes {
		switch changes[i].Op {
		case cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved, cluster.NodeTouched:
			m.messages.outdated = true
		}
	}
}

// AnythingChanged says that changes are not known one by one: any may have been made.
func (m *Machine) AnythingChanged() { m.messages.outdated = true }

// advance refreshes some classes when that is due. tell gives a class's message to at most
// maxPods of its pods, and returns when the first is due that it has put off.
func (m *messages) advance(t *lifecycle.Turn, tell func(class *engine.Class, message string, maxPods int) (putOff time.Time)) {
	m.advanced, m.anyWaits = t.Now, t.Queue.AnyWaits()
	if len(m.left) == 0 {
		if due := m.due(); due.IsZero() || t.Now.Before(due) {
			return
		}
		m.outdated, m.putOff, m.since, m.left = false, time.Time{}, t.Now, nil
		for _, w := range t.Queue.Waiting() {
			m.left = append(m.left, w.Class())
		}
	}
	n := min(len(m.left), classesPerStep)
	for _, class := range m.left[:n] {
		if message, ok := m.refresh(t, class); ok {
			m.again(tell(class, message, m.podsPerClass))
		}
	}
	m.left = m.left[n:]
}

// again has messages refreshed when texts are due that were put off; zero for none.
func (m *messages) again(at time.Time) { m.putOff = lifecycle.Earliest(m.putOff, at) }

// refresh brings the diagnosis of a waiting class up to date and returns its message. ok
// is false for a class that ceased to wait, or of which only another attempt can tell:
// when something outside the core rejects it, or nothing rejects it on some node any more, which the
// leftover sweep counts as a missed wake-up.
func (m *messages) refresh(t *lifecycle.Turn, class *engine.Class) (message string, ok bool) {
	d := t.Queue.StillRejected(class)
	if d == nil || d.Outside() {
		return "", false
	}
	d = m.scheduler.Refreshed(class, d)
	if d.LeavesNode() {
		return "", false
	}
	t.Queue.Refresh(class, d)
	return d.Message(), true
}

// due returns when the next refresh is to begin, zero when nothing asks for one.
func (m *messages) due() time.Time {
	earliest := m.since.Add(refreshEvery)
	if m.outdated || !m.putOff.IsZero() && m.putOff.Before(earliest) {
		return earliest
	}
	return m.putOff
}

// nextWake is at once while classes are left.
func (m *messages) nextWake() time.Time {
	switch {
	case len(m.left) > 0:
		return m.advanced
	case m.anyWaits:
		return m.due()
	}
	return time.Time{}
}
