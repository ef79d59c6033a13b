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
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
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

// player is a core and its planner, driven by a recording.
type player struct {
	Result
	core    *core.Core
	planner *planner.Planner
	plan    *autoscaler.Plan // made, and not delivered yet
	free    bool             // plans come when they are made, not when recorded
	ledger  step.Ledger
}

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
	how := engine.Options{Seed: h.Seed}
	cfg := core.Config{Profiles: sched.Build(schema), Engine: how, Queue: sched.Queue, Autoscale: h.Autoscale, ExternalScheduler: h.ExternalScheduler}
	if p.Autoscale != nil && h.Autoscale != nil {
		cfg.Autoscale = p.Autoscale
	}
	c, err := core.New(schema, cfg)
	if err != nil {
		return nil, err
	}
	out := &player{core: c, free: p != Policy{}}
	if cfg.Autoscale != nil {
		if out.planner, err = planner.New(c.State(), cfg.Profiles, how, expander.LeastWaste); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *player) step(l *line) error {
	var in []step.Input
	for i := range l.In {
		x, err := decode(l.In[i])
		if err != nil {
			return fmt.Errorf("in[%d] (%s): %w", i, l.In[i].Kind, err)
		}
		if _, ok := x.(step.PlanMade); ok {
			if x = p.delivered(); x == nil {
				continue
			}
		}
		in = append(in, x)
	}
	if p.free {
		if x := p.delivered(); x != nil {
			in = append(in, x)
		}
	}
	p.Steps++
	r := p.core.Step(time.Unix(0, l.Time), in...)
	p.ledger.Add(r.Decisions)
	p.Decisions = append(p.Decisions, r.Decisions...)
	if r.Plan != nil {
		// As at the live edge: the follower stands where the core stood when
		// it asked.
		if err := p.planner.CatchUp(); err != nil {
			return fmt.Errorf("the planner can't follow: %w", err)
		}
		p.plan = p.planner.Plan(*r.Plan)
	}
	return nil
}

func (p *player) delivered() step.Input {
	if p.plan == nil {
		return nil
	}
	plan := p.plan
	p.plan = nil
	return step.PlanMade{Plan: plan}
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
