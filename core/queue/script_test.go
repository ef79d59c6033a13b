package queue_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// TestScripts runs testdata/*.txt, which read as the queue's specification. After
// each command the queue is drawn, and its invariants are checked. The commands:
//
//	config [initial-backoff=D] [max-backoff=D] [leftover=D]      at the head of a script
//	add NAME class=C [priority=N] [gated]     classes are small, medium and large
//	update NAME class=C [priority=N] [gated]
//	remove NAME
//	tick DURATION                             time passes; nothing else happens
//	pop                                       says who is tried next
//	placed NAME | fail NAME | requeue NAME    what becomes of a popped pod
//	reject NAME | hold NAME [preemption-helps]
//	release-to-try NAME | release-to-wait NAME
//	nominate NAME | nominate NAME none
//	activate NAME | wake-pod NAME
//	wake [fits=C] [preempts=C] [node-ready=NAME]   says which classes are asked
//	sweep
//	reclassify NAME class=C                   the rules come to tell the pod apart
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScripted(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.run(d)
		})
	})
}

// scripted is a queue with what stands around it.
type scripted struct {
	t     *testing.T
	queue *queue.Queue
	kit   *kit
	names []string // of the pods, as they came
	now   time.Time
}

func newScripted(t *testing.T) *scripted {
	return &scripted{t: t, queue: queue.New(queue.DefaultConfig(), framework.ByPriority), kit: newKit(), now: start}
}

func (s *scripted) item(name string) *queue.Item {
	s.t.Helper()
	item := s.queue.Get(testkit.Pod(name).UID)
	if item == nil {
		s.t.Fatalf("no pod %s is in the queue", name)
	}
	return item
}

func (s *scripted) run(d *datadriven.TestData) string {
	args := script.NewArgs(s.t, d)
	said := s.do(d, args)
	args.Done()
	for _, broken := range s.queue.Invariants() {
		s.t.Errorf("%s: after %s: %s", d.Pos, d.Cmd, broken)
	}
	return said + s.draw()
}

func (s *scripted) do(d *datadriven.TestData, args *script.Args) (said string) {
	gate := func() *framework.Reason {
		if args.Flag("gated") {
			return &framework.Reason{Messages: []string{"gated"}}
		}
		return nil
	}
	class := func() *engine.Class {
		name := args.String("class", "")
		c := s.kit.class(name)
		if c == nil {
			d.Fatalf(s.t, "no class %q", name)
		}
		return c
	}
	diagnosis := func() *engine.Diagnosis {
		return (&engine.Diagnosis{}).WithPreemption(engine.Preemption{RuledOut: !args.Flag("preemption-helps")})
	}
	switch d.Cmd {
	case "config":
		cfg := queue.DefaultConfig()
		cfg.InitialBackoff = args.Duration("initial-backoff", cfg.InitialBackoff)
		cfg.MaxBackoff = args.Duration("max-backoff", cfg.MaxBackoff)
		cfg.Leftover = args.Duration("leftover", cfg.Leftover)
		s.queue = queue.New(cfg, framework.ByPriority)
	case "add":
		name := args.Name()
		s.names = append(s.names, name)
		s.queue.Add(s.now, s.kit.pod(name, args.Int("priority", 0)), class(), gate())
	case "update":
		name := args.Name()
		s.queue.Update(s.item(name), s.kit.pod(name, args.Int("priority", 0)), class(), gate())
	case "remove":
		name := args.Name()
		s.queue.Remove(s.item(name).Pod().UID)
		s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == name })
	case "tick":
		took, err := time.ParseDuration(args.Name())
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		s.now = s.now.Add(took)
	case "pop":
		item := s.queue.Pop(s.now)
		if item == nil {
			return "nobody is tried\n"
		}
		return item.Pod().Object.Name + " is tried\n"
	case "placed":
		s.queue.Placed(s.item(args.Name()))
	case "fail":
		s.queue.Fail(s.now, s.item(args.Name()))
	case "requeue":
		name := args.Name()
		s.queue.Requeue(s.item(name), s.kit.pod(name, 0))
	case "reject":
		s.queue.Reject(s.now, s.item(args.Name()), diagnosis())
	case "hold":
		s.queue.Hold(s.now, s.item(args.Name()), diagnosis())
	case "release-to-try":
		s.queue.ReleaseToTry(s.now, s.item(args.Name()))
	case "release-to-wait":
		s.queue.ReleaseToWait(s.now, s.item(args.Name()), diagnosis())
	case "nominate":
		s.queue.SetNominated(s.item(args.Name()), !args.Flag("none"))
	case "activate":
		s.queue.Activate(s.item(args.Name()))
	case "wake-pod":
		s.queue.WakePod(s.now, s.item(args.Name()))
	case "wake":
		return s.wake(args.String("fits", ""), args.String("preempts", ""), args.String("node-ready", ""))
	case "sweep":
		s.queue.Sweep(s.now)
	case "reclassify":
		pod, to := s.item(args.Name()).Pod().UID, class()
		s.queue.Reclassify(func(*cluster.Pod) *engine.Class { return to }, func(p *cluster.Pod) bool { return p.UID == pod })
	default:
		d.Fatalf(s.t, "unknown command %q", d.Cmd)
	}
	return ""
}

// wake puts a change to the queue that helps some classes and lets a nominated pod
// onto its node.
func (s *scripted) wake(fits, preempts, nodeReady string) string {
	if nodeReady != "" {
		s.queue.WakePod(s.now, s.item(nodeReady))
	}
	var asked []string
	s.queue.Wake(s.now, func(c *engine.Class, d *engine.Diagnosis) (engine.Help, *engine.Diagnosis) {
		name := s.kit.name(c)
		asked = append(asked, name)
		switch name {
		case fits:
			return engine.Fits, d
		case preempts:
			return engine.Preempts, d
		}
		return engine.NoHelp, d
	})
	if asked == nil {
		return "no class is asked\n"
	}
	return "asked: " + strings.Join(asked, ", ") + "\n"
}

// draw writes down who is where: a line for each stage and each waiting class.
func (s *scripted) draw() string {
	var out strings.Builder
	if s.now != start {
		fmt.Fprintf(&out, "at %s\n", s.now.Sub(start))
	}
	stages := map[queue.Stage][]string{}
	members := map[*engine.Class][]string{}
	for _, name := range s.names {
		item := s.item(name)
		said := name
		switch {
		case item.Stage() == queue.Backoff && item.AfterError():
			said += fmt.Sprintf(" (until %s, after an error)", item.BackoffEnd().Sub(start))
		case item.Stage() == queue.Backoff:
			said += fmt.Sprintf(" (until %s)", item.BackoffEnd().Sub(start))
		case item.Stage() == queue.Held:
			said += " (held)"
		}
		if item.Nominated() {
			said += " (nominated)"
		}
		if item.Probe() {
			said += " (probe)"
		}
		if item.Swept() {
			said += " (swept)"
		}
		if c := item.WaitsWith(); c != nil {
			members[c] = append(members[c], said)
		} else {
			stages[item.Stage()] = append(stages[item.Stage()], said)
		}
	}
	for _, stage := range []queue.Stage{queue.Active, queue.Backoff, queue.Gated, queue.InFlight} {
		if pods := stages[stage]; pods != nil {
			fmt.Fprintf(&out, "%s: %s\n", stage, strings.Join(pods, ", "))
		}
	}
	s.queue.Each(func(w *queue.WaitingClass) {
		known := ""
		if !w.Diagnosis().Preemption().RuledOut {
			known = ", preemption may help"
		}
		fmt.Fprintf(&out, "class %s, %s%s: %s\n", s.kit.name(w.Class()), w.State(), known, cmp.Or(strings.Join(members[w.Class()], ", "), "nobody waits"))
	})
	if at := s.queue.NextWake(); !at.IsZero() {
		fmt.Fprintf(&out, "next wake at %s\n", at.Sub(start))
	}
	return out.String()
}
