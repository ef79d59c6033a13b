package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
)

// TestPropertyTheQueueEqualsItsModel puts one random history into the queue and into
// its model, and compares everything that others can ask after each operation.
func TestPropertyTheQueueEqualsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := queue.Config{
			InitialBackoff: time.Duration(rapid.IntRange(0, 3).Draw(t, "initial")) * time.Second,
			MaxBackoff:     time.Duration(rapid.IntRange(2, 9).Draw(t, "max")) * time.Second,
			Leftover:       time.Duration(rapid.SampledFrom([]int{0, 20}).Draw(t, "leftover")) * time.Second,
		}
		p := &pair{t: t, queue: queue.New(cfg, framework.ByPriority), model: &model{cfg: cfg}, kit: newKit(), now: time.Unix(1000, 0)}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			p.step()
			p.compare()
		}
	})
}

// pair is a queue and its model.
type pair struct {
	t         *rapid.T
	queue     *queue.Queue
	model     *model
	kit       *kit
	now       time.Time
	added     int
	diagnoses int
	history   []string
}

func (p *pair) fatalf(format string, args ...any) {
	p.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(p.history, "\n"))
}

func (p *pair) did(format string, args ...any) {
	p.history = append(p.history, fmt.Sprintf(format, args...))
}

func (p *pair) item(x *modelPod) *queue.Item { return p.queue.Get(types.UID("pod-" + x.name)) }

// pick draws one of the pods that meet a condition, nil when none does.
func (p *pair) pick(what string, f func(*modelPod) bool) *modelPod {
	list := p.model.where(f)
	if len(list) == 0 {
		return nil
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(p.t, what)]
}

// diagnosis returns one that differs from all others.
func (p *pair) diagnosis() *engine.Diagnosis {
	p.diagnoses++
	known := engine.Preemption{RuledOut: rapid.Bool().Draw(p.t, "ruled out"), Message: fmt.Sprint("diagnosis ", p.diagnoses)}
	return (&engine.Diagnosis{}).WithPreemption(known)
}

func gateOf(gated bool) *framework.Reason {
	if gated {
		return &framework.Reason{}
	}
	return nil
}

// step does one thing to both. Pods in flight are decided on more often than new
// things happen, so that most histories have pods at all stages.
func (p *pair) step() {
	class := func() string { return rapid.SampledFrom(classes).Draw(p.t, "class") }
	priority := func() int { return 10 * rapid.IntRange(0, 1).Draw(p.t, "priority") }
	gated := func() bool { return rapid.IntRange(0, 5).Draw(p.t, "gated") == 0 }
	anyPod := func(*modelPod) bool { return true }
	at := func(stage queue.Stage) func(*modelPod) bool {
		return func(x *modelPod) bool { return x.stage == stage }
	}
	now := p.now.UnixNano()
	switch k := rapid.IntRange(0, 19).Draw(p.t, "step"); k {
	case 0, 1, 2:
		name, c, prio, g := fmt.Sprint("p", p.added), class(), priority(), gated()
		p.added++
		p.did("add %s class=%s priority=%d gated=%v", name, c, prio, g)
		p.model.add(now, name, c, prio, g)
		p.queue.Add(p.now, p.kit.pod(name, prio), p.kit.class(c), gateOf(g))
	case 3, 4, 5, 6, 7:
		p.pop()
	case 8, 9, 10, 11:
		if x := p.pick("in flight", at(queue.InFlight)); x != nil {
			p.decide(x)
		}
	case 12:
		if x := p.pick("held", at(queue.Held)); x != nil {
			p.release(x)
		}
	case 13, 14:
		p.wake()
	case 15:
		took := time.Duration(rapid.IntRange(0, 6000).Draw(p.t, "milliseconds")) * time.Millisecond
		if rapid.IntRange(0, 9).Draw(p.t, "long") == 0 {
			took += p.model.cfg.Leftover
		}
		p.did("tick %s", took)
		p.now = p.now.Add(took)
	case 16:
		p.did("sweep")
		p.model.sweep(now)
		p.queue.Sweep(p.now)
	case 17:
		if x := p.pick("updated", anyPod); x != nil {
			c, prio, g := class(), priority(), gated()
			p.did("update %s class=%s priority=%d gated=%v", x.name, c, prio, g)
			p.queue.Update(p.item(x), p.kit.pod(x.name, prio), p.kit.class(c), gateOf(g))
			p.model.update(x, c, prio, g)
		}
	case 18:
		if x := p.pick("concerned", anyPod); x != nil {
			p.concern(x, class())
		}
	case 19:
		if x := p.pick("removed", anyPod); x != nil && rapid.Bool().Draw(p.t, "really") {
			p.did("remove %s", x.name)
			p.queue.Remove(p.item(x).Pod().UID)
			p.model.remove(x)
		}
	}
}

func (p *pair) pop() {
	item, want := p.queue.Pop(p.now), p.model.pop(p.now.UnixNano())
	got := "none"
	if item != nil {
		got = item.Pod().Object.Name
	}
	p.did("pop: %s", got)
	if want == nil && item != nil || want != nil && got != want.name {
		p.fatalf("the queue pops %s, the model %+v", got, want)
	}
}

// decide ends the flight of a pod.
func (p *pair) decide(x *modelPod) {
	now := p.now.UnixNano()
	switch rapid.IntRange(0, 6).Draw(p.t, "outcome") {
	case 0, 1:
		p.did("reject %s", x.name)
		d := p.diagnosis()
		p.queue.Reject(p.now, p.item(x), d)
		p.model.reject(now, x, d, queue.Unschedulable)
	case 2:
		p.did("hold %s", x.name)
		d := p.diagnosis()
		p.queue.Hold(p.now, p.item(x), d)
		p.model.reject(now, x, d, queue.Held)
	case 3:
		p.did("fail %s", x.name)
		p.queue.Fail(p.now, p.item(x))
		p.model.fail(now, x)
	case 4:
		p.did("placed %s", x.name)
		p.queue.Placed(p.item(x))
		p.model.endProbe(x)
	case 5:
		p.did("requeue %s", x.name)
		p.queue.Requeue(p.item(x), p.item(x).Pod())
		x.swept = false
		p.model.try(x, queue.Active)
	case 6:
		c := rapid.SampledFrom(classes).Draw(p.t, "signed again")
		p.did("%s is signed again: %s", x.name, c)
		p.queue.SetClass(p.item(x), p.kit.class(c))
		x.class = c
	}
}

// release ends the holding of a pod.
func (p *pair) release(x *modelPod) {
	now := p.now.UnixNano()
	switch rapid.IntRange(0, 2).Draw(p.t, "release") {
	case 0:
		p.did("release %s to try", x.name)
		p.queue.ReleaseToTry(p.now, p.item(x))
		p.model.releaseToTry(now, x)
	case 1:
		p.did("release %s to wait", x.name)
		d := p.diagnosis()
		p.queue.ReleaseToWait(p.now, p.item(x), d)
		p.model.releaseToWait(now, x, d)
	case 2:
		p.did("fail held %s", x.name)
		p.queue.Fail(p.now, p.item(x))
		p.model.fail(now, x)
	}
}

// concern does what is done to single pods whatever happens to their class.
func (p *pair) concern(x *modelPod, class string) {
	switch rapid.IntRange(0, 3).Draw(p.t, "concern") {
	case 0:
		yes := rapid.Bool().Draw(p.t, "nominated")
		p.did("nominate %s: %v", x.name, yes)
		p.queue.SetNominated(p.item(x), yes)
		x.nominated = yes
	case 1:
		p.did("activate %s", x.name)
		p.queue.Activate(p.item(x))
		p.model.activate(x)
	case 2:
		if x.stage == queue.Unschedulable {
			p.did("wake %s itself", x.name)
			p.queue.WakePod(p.now, p.item(x))
			p.model.wakePod(p.now.UnixNano(), x)
		}
	case 3:
		p.did("reclassify %s as %s", x.name, class)
		uid := p.item(x).Pod().UID
		p.queue.Reclassify(func(*cluster.Pod) *engine.Class { return p.kit.class(class) }, func(y *cluster.Pod) bool { return y.UID == uid })
		p.model.reclassify(x, class)
	}
}

// wake puts a change to both that helps some classes.
func (p *pair) wake() {
	help := map[string]engine.Help{}
	known := map[string]*engine.Diagnosis{}
	for _, c := range classes {
		help[c] = engine.Help(rapid.IntRange(int(engine.NoHelp), int(engine.Fits)).Draw(p.t, "help"))
		known[c] = p.diagnosis()
	}
	p.did("wake %v", help)
	var asked []string
	p.queue.Wake(p.now, func(c *engine.Class, d *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
		name := p.kit.name(c)
		if w := p.model.class(name); w == nil || d.Preemption() != w.diagnosis.Preemption() {
			p.fatalf("class %s is asked with %+v", name, d.Preemption())
		}
		asked = append(asked, name)
		return help[name], known[name]
	})
	want := p.model.wake(p.now.UnixNano(), func(class string) (engine.Help, *engine.Diagnosis) { return help[class], known[class] })
	if !slices.Equal(asked, want) {
		p.fatalf("the queue asks %v, the model %v", asked, want)
	}
}

// compare compares all that others can ask, and checks the invariants.
func (p *pair) compare() {
	if broken := p.queue.Invariants(); broken != nil {
		p.fatalf("broken: %v", broken)
	}
	var rejected []string
	for _, x := range p.model.where(func(x *modelPod) bool {
		return x.rejected && x.stage != queue.Gated && x.stage != queue.InFlight
	}) {
		rejected = append(rejected, x.name)
	}
	var got []string
	for _, item := range p.queue.Rejected() {
		got = append(got, item.Pod().Object.Name)
	}
	if !slices.Equal(got, rejected) {
		p.fatalf("rejected are %v, of the model %v", got, rejected)
	}
	for _, x := range p.model.pods {
		item := p.item(x)
		got := fmt.Sprint(item.Stage(), p.kit.name(item.Class()), item.Attempts(), item.BackoffEnd().UnixNano(),
			item.AfterError(), item.Nominated(), item.Swept(), item.Probe())
		want := fmt.Sprint(x.stage, x.class, x.attempts, x.until, x.afterError, x.nominated, x.swept, x.probeOf != nil)
		if got != want {
			p.fatalf("%s is %s, in the model %s", x.name, got, want)
		}
	}
	for _, name := range classes {
		p.compareClass(name)
	}
	if got, want := p.queue.NextWake(), p.model.nextWake(); !got.Equal(want) {
		p.fatalf("the queue wakes next at %s, the model at %s", got, want)
	}
	if got, want := p.queue.Counts(), p.model.counts(); got != want {
		p.fatalf("the queue counts %+v, the model %+v", got, want)
	}
	if got, want := p.queue.AnyWaits(), len(p.model.classes) > 0; got != want {
		p.fatalf("any class waits: %v, in the model %v", got, want)
	}
}

func (p *pair) compareClass(name string) {
	w := p.model.class(name)
	d := p.queue.StillRejected(p.kit.class(name))
	if (d != nil) != (w != nil && w.state == waits) || d != nil && d.Preemption() != w.diagnosis.Preemption() {
		p.fatalf("class %s is still rejected for %+v, in the model %+v", name, d, w)
	}
	if w == nil {
		return
	}
	found := false
	p.queue.Each(func(x *queue.WaitingClass) {
		if p.kit.name(x.Class()) != name {
			return
		}
		found = true
		pods := len(p.model.where(func(y *modelPod) bool { return y.waitsWith == w }))
		if x.State() != w.state || x.Pods() != pods {
			p.fatalf("class %s is %s with %d pods, in the model %s with %d", name, x.State(), x.Pods(), w.state, pods)
		}
	})
	if !found {
		p.fatalf("class %s doesn't wait, in the model it is %s", name, w.state)
	}
	var got, want []string
	for _, item := range p.queue.Unnominated(p.kit.class(name)) {
		got = append(got, item.Pod().Object.Name)
	}
	for _, x := range p.model.unschedulable(w, false) {
		want = append(want, x.name)
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		p.fatalf("of class %s wait %v, in the model %v", name, got, want)
	}
}
