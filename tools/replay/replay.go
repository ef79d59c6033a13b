package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/drive"
)

// Policy is a configuration to replay under, where it differs from that of the
// recording.
type Policy struct {
	Scheduler *config.Scheduler
	Autoscale *core.Autoscale
}

// Result is what a replay has decided.
type Result struct {
	Steps     int
	Decisions []step.Decision
	Digest    string
	// Recorded is the digest that the recording ends with; "" when it was cut off.
	Recorded string
	// Note says how the recording ends.
	Note string
}

// Play replays a recording. Under a policy the world goes on as recorded, and
// the decisions are those that would have been made in it.
func Play(ctx context.Context, path string, p Policy) (*Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	at := 0
	next := func() ([]byte, bool, error) {
		at++
		raw, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(raw), false, nil
		}
		return raw, true, err
	}
	raw, whole, err := next()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	h := Header{}
	if err := json.Unmarshal(raw, &h); err != nil || !whole || h.Version == 0 {
		return nil, fmt.Errorf("%s:1: this is no recording of Berth's: a line with berthRecording was expected", path)
	}
	if h.Version != Version {
		return nil, fmt.Errorf("%s:1: berthRecording is %d; this Berth reads %d", path, h.Version, Version)
	}
	r, err := newPlayer(h, p)
	if err != nil {
		return nil, fmt.Errorf("%s:1: %w", path, err)
	}
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("stopped at line %d of %s: %w", at, path, context.Cause(ctx))
		}
		raw, whole, err := next()
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, at, err)
		}
		if !whole {
			r.Note = fmt.Sprintf("%s:%d: the recording was cut off here; what came before was replayed, and there is no digest to compare", path, at)
			break
		}
		l := line{}
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: this line can't be read: %w", path, at, err)
		}
		if l.End != nil {
			r.Recorded = l.End.Digest
			r.Note = fmt.Sprintf("the recording ends after %d decisions: %s", l.End.Decisions, l.End.Why)
			break
		}
		if err := r.step(&l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, at, err)
		}
	}
	r.Digest = r.ledger.Digest()
	return &r.Result, nil
}

// player drives a core with what a recording has: outcomes are inputs of the
// recording, except plans, which the driver's planner makes again.
type player struct {
	Result
	drive.Unanswered // the recording answers
	driver           *drive.Driver
	deliver          func()       // puts the plan that was made and isn't delivered yet into inputs; nil for none
	delivery         delivery     // of plans
	inputs           []step.Input // of the Step that is being read
	ledger           step.Ledger
}

// delivery is when a plan reaches the core.
type delivery uint8

const (
	asRecorded delivery = iota // where the recording has one
	atOnce                     // with the next Step: another policy asks at other times
)

func newPlayer(h Header, p Policy) (*player, error) {
	sched := config.Default()
	switch {
	case p.Scheduler != nil:
		sched = *p.Scheduler
	case h.Scheduler != "":
		var err error
		if sched, err = config.Parse([]byte(h.Scheduler)); err != nil {
			return nil, fmt.Errorf("schedulerConfig: %w", err)
		}
	}
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(sched.Build(schema)...)
	cfg.Engine.Seed, cfg.Queue = h.Seed, sched.Queue
	cfg.Autoscale, cfg.ExternalScheduler = h.Autoscale, h.ExternalScheduler
	if p.Autoscale != nil && h.Autoscale != nil {
		cfg.Autoscale = p.Autoscale
	}
	out := &player{}
	if p != (Policy{}) {
		out.delivery = atOnce
	}
	d, err := drive.New(drive.Config{
		Schema: schema, Core: cfg, Workers: out, Hooks: []drive.Hook{&out.ledger, drive.HookFunc(out.decided)},
		Inbox: func(in step.Input) { out.inputs = append(out.inputs, in) },
	})
	if err != nil {
		return nil, err
	}
	out.driver = d
	return out, nil
}

// Plan implements drive.Workers: it makes the plan at once, of the cluster as it
// was when the core asked, and keeps it until it is to be delivered.
func (p *player) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	plan := compute()
	p.deliver = func() { done(plan) }
}

// decided keeps the decisions of a Step.
func (p *player) decided(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	p.Decisions = append(p.Decisions, r.Decisions...)
}

// step plays one line of the recording.
func (p *player) step(l *line) error {
	p.inputs = nil
	for i := range l.In {
		x, err := decode(l.In[i])
		if err != nil {
			return fmt.Errorf("in[%d] (%s): %w", i, l.In[i].Kind, err)
		}
		if _, ok := x.(step.PlanMade); ok {
			p.deliverPlan()
		} else {
			p.inputs = append(p.inputs, x)
		}
	}
	if p.delivery == atOnce {
		p.deliverPlan()
	}
	p.Steps++
	_, err := p.driver.Step(time.Unix(0, l.Time), p.inputs...)
	return err
}

// deliverPlan adds the plan that was made last to the inputs, if the core doesn't
// have it yet.
func (p *player) deliverPlan() {
	if p.deliver != nil {
		p.deliver()
		p.deliver = nil
	}
}

// Difference is a pod or a group about which another configuration decides
// otherwise.
type Difference struct{ What, Recorded, Now string }

// Diff compares, pod by pod, where pods were placed, and group by group, how
// many nodes were ordered.
func Diff(recorded, now []step.Decision) []Difference {
	type outcome struct{ recorded, now string }
	at := map[string]*outcome{}
	var order []string
	nodes := [2]map[string]int{{}, {}}
	for side, list := range [][]step.Decision{recorded, now} {
		for i := range list {
			d := &list[i]
			var key, value string
			switch d.Kind {
			case step.Placed:
				key, value = "pod "+d.Pod, d.Node
			case step.ScaledUp:
				nodes[side][d.Group] += d.Nodes
				key, value = "group "+d.Group, fmt.Sprintf("%d nodes ordered", nodes[side][d.Group])
			case step.NodeRemoved:
				key, value = "node "+d.Node, "removed"
			default:
				continue
			}
			o := at[key]
			if o == nil {
				o = &outcome{"nothing", "nothing"}
				at[key] = o
				order = append(order, key)
			}
			if side == 0 {
				o.recorded = value
			} else {
				o.now = value
			}
		}
	}
	var out []Difference
	for _, key := range order {
		if o := at[key]; o.recorded != o.now {
			out = append(out, Difference{key, o.recorded, o.now})
		}
	}
	return out
}
