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
	advanced     time.Time       // when advance last ran
	anyWaits     bool            // a class waited then; without one, nothing is refreshed
}

// NodesChanged takes note of changes of the cluster: those of nodes make messages
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

func (m *messages) advance(t *lifecycle.Turn, tell func(class *engine.Class, message string, maxPods int)) {
	m.advanced, m.anyWaits = t.Now, t.Queue.AnyWaits()
	if len(m.left) == 0 {
		if !m.outdated || t.Now.Before(m.since.Add(refreshEvery)) {
			return
		}
		m.outdated, m.since, m.left = false, t.Now, nil
		for _, w := range t.Queue.Waiting() {
			m.left = append(m.left, w.Class())
		}
	}
	n := min(len(m.left), classesPerStep)
	for _, class := range m.left[:n] {
		if message, ok := m.refresh(t, class); ok {
			tell(class, message, m.podsPerClass)
		}
	}
	m.left = m.left[n:]
}

// refresh brings the diagnosis of a waiting class up to date and returns its message. ok
// is false for a class that ceased to wait, or of which only another attempt can tell:
// when something outside the core rejects it, or nothing does any more, which the
// leftover sweep counts as a missed wake-up.
func (m *messages) refresh(t *lifecycle.Turn, class *engine.Class) (message string, ok bool) {
	d := t.Queue.StillRejected(class)
	if d == nil || d.Outside() {
		return "", false
	}
	d = m.scheduler.Refreshed(class, d)
	if d.RejectsNone() {
		return "", false
	}
	t.Queue.Refresh(class, d)
	return d.Message(), true
}

// nextWake is at once while classes are left.
func (m *messages) nextWake() time.Time {
	switch {
	case len(m.left) > 0:
		return m.advanced
	case m.outdated && m.anyWaits:
		return m.since.Add(refreshEvery)
	}
	return time.Time{}
}
