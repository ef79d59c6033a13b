package replay

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
)

// This file plays a recording. What must hold: under the recorded configuration the same
// decisions are made, byte for byte; an error names the file and the line.

// Policy is a configuration to replay under; zero values stand for that of the recording. An
// autoscaler's is ignored where the recording has no autoscaler.
type Policy struct {
	// Version is that of the rules, 0 for the recording's.
	Version compat.Version
	// Scheduler is the path of a KubeSchedulerConfiguration, "" for the recording's configuration.
	Scheduler string
	Autoscale *core.Autoscale
}

// Result is what was decided in a replay. Decisions are all of them, in order: a recording of days takes
// as much memory.
type Result struct {
	Steps     int
	Decisions []step.Decision
	// Core is as the last Step has left it.
	Core   *core.Core
	Digest string
	// Recorded is the digest that the recording ends with; "" when it was cut off.
	Recorded string
	// Note says how the recording ends.
	Note string
	// Warning says that the rules followed aren't those of the recording, "" when they are.
	Warning string
}

// Watcher sees the core after a Step, with the time of the Step and what came of it.
type Watcher func(c *core.Core, now time.Time, ready *step.Ready)

// Play replays a recording whole (Open).
func Play(ctx context.Context, path string, p Policy, watchers ...Watcher) (*Result, error) {
	r, err := Open(path, p, watchers...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // nothing was written
	if _, err := r.Play(ctx, time.Unix(0, math.MaxInt64)); err != nil {
		return nil, err
	}
	return &r.player.Result, nil
}

// Replay is a recording that is being played. It reads the file until it is closed.
type Replay struct {
	file   *os.File
	in     *lines
	player *player
	ahead  *line // has been read, and is to be played next; nil for none
	over   bool
}

// Open opens a recording, to be replayed from its beginning. Under a policy the world goes on as recorded, and
// the decisions are those that would have been made in it: pods are bound and nodes come as they did
// then, whatever this policy wanted. So the first differences are the policy's, and later ones also
// follow from a world that didn't do what it was asked for.
// Each watcher is called after every Step.
func Open(path string, p Policy, watchers ...Watcher) (*Replay, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	in := &lines{from: bufio.NewReaderSize(f, 1<<20), path: path}
	h, err := in.header()
	if err == nil {
		var made *player
		if made, err = newPlayer(h, p, watchers); err == nil {
			return &Replay{file: f, in: in, player: made}, nil
		}
		err = in.errorf("%w", err)
	}
	return nil, errors.Join(err, f.Close())
}

// Close closes the file.
func (r *Replay) Close() error { return r.file.Close() }

// Core is the core that replays.
func (r *Replay) Core() *core.Core { return r.player.Core }

// Play plays the Steps up to a time and no further, and reports whether there are no more. A later call goes on
// from there.
func (r *Replay) Play(ctx context.Context, until time.Time) (over bool, err error) {
	for !r.over {
		if ctx.Err() != nil {
			return false, fmt.Errorf("stopped at line %d of %s: %w", r.in.number, r.in.path, context.Cause(ctx))
		}
		l := r.ahead
		if l == nil {
			if l, err = r.read(); err != nil {
				return false, err
			}
		}
		if r.ahead = nil; l == nil {
			break
		}
		if time.Unix(0, l.Time).After(until) {
			r.ahead = l
			return false, nil
		}
		if err := r.player.step(l); err != nil {
			return false, r.in.errorf("%w", err)
		}
	}
	return true, nil
}

// read returns the next line that is a Step. It returns nil at the end, and says in the result how the
// recording ends.
func (r *Replay) read() (*line, error) {
	l, err := r.in.next()
	switch {
	case errors.Is(err, errCutOff):
		r.player.Note = r.in.errorf("the recording was cut off here; what came before was replayed, and there is no digest to compare").Error()
	case err != nil:
		return nil, err
	case l.End != nil:
		r.player.Recorded = l.End.Digest
		r.player.Note = fmt.Sprintf("the recording ends after %d decisions: %s", l.End.Decisions, l.End.Why)
	default:
		return l, nil
	}
	r.over, r.player.Digest = true, r.player.ledger.Digest()
	return nil, nil
}

// lines reads a recording line by line.
type lines struct {
	from   *bufio.Reader
	path   string
	number int // of the line that was read last
}

// errCutOff says that a recording ends within a line: its process was killed.
var errCutOff = errors.New("cut off")

// errorf returns an error about the line that was read last.
func (in *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{in.path, in.number}, args...)...)
}

// read returns the next line, or errCutOff where it has no end.
func (in *lines) read() ([]byte, error) {
	in.number++
	raw, err := in.from.ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF):
		return nil, errCutOff
	case err != nil:
		return nil, in.errorf("%w", err)
	}
	return raw, nil
}

// header reads the first line.
func (in *lines) header() (Header, error) {
	h := Header{}
	raw, err := in.read()
	if err != nil && !errors.Is(err, errCutOff) {
		return h, err
	}
	if err != nil || json.Unmarshal(raw, &h) != nil || h.Version == 0 {
		return h, in.errorf("this is not a recording of Berth: expected a line with berthRecording")
	}
	if h.Version != Version {
		return h, in.errorf("berthRecording is %d; this version of Berth reads %d", h.Version, Version)
	}
	return h, nil
}

// next reads a line after the header.
func (in *lines) next() (*line, error) {
	raw, err := in.read()
	if err != nil {
		return nil, err
	}
	l := &line{}
	if err := json.Unmarshal(raw, l); err != nil {
		return nil, in.errorf("this line can't be parsed: %w", err)
	}
	return l, nil
}

// player drives a core with the inputs of a recording. Outcomes of work are among them,
// so nobody does the work; only plans are made again, by the driver's planner.
type player struct {
	Result
	drive.Unanswered
	driver *drive.Driver
	// deliver makes the plan that the core asked for last, and puts it into inputs; nil
	// when the core has it.
	deliver  func()
	delivery delivery
	answers  answers         // for the plan that is delivered next
	cuts     autoscaler.Cuts // of the plan that is delivered next
	inputs   []step.Input    // of the line that is being played
	last     int64           // when the last Step was, as in line.Time
	ledger   step.Ledger
	watchers []Watcher
}

// delivery is when a plan reaches the core.
type delivery uint8

const (
	asRecorded delivery = iota // among the inputs where the recording has a PlanMade
	atOnce                     // with the next Step: another policy asks for plans at other times
)

// newPlayer returns a player with the configuration of a header, where the policy has no
// other.
func newPlayer(h Header, p Policy, watchers []Watcher) (*player, error) {
	version, warning, err := h.rules(p)
	if err != nil {
		return nil, err
	}
	rules := config.Rules{Version: version, Gates: h.Gates}
	sched := config.DefaultFor(rules)
	switch {
	case p.Scheduler != "":
		if sched, err = config.LoadFor(p.Scheduler, rules); err != nil {
			return nil, err
		}
	case h.Scheduler != "":
		if sched, err = config.ParseFor([]byte(h.Scheduler), rules); err != nil {
			return nil, fmt.Errorf("schedulerConfig: %w", err)
		}
	}
	if a := h.Autoscale; a != nil && h.ExternalScheduler {
		sched = sched.Beside(slices.Concat(a.AllowedSchedulers, a.BypassedSchedulers)...)
	}
	schema, profiles := sched.Build()
	cfg := core.DefaultConfig(profiles...)
	cfg.Engine.Seed, cfg.Queue = h.Seed, sched.Queue
	cfg.Autoscale, cfg.ExternalScheduler, cfg.Shadow = h.Autoscale, h.ExternalScheduler, h.Shadow
	cfg.NoExpectedNominations = !sched.Enabled(config.NominatedNodeNameForExpectation)
	if p.Autoscale != nil && h.Autoscale != nil {
		cfg.Autoscale = p.Autoscale
	}
	out := &player{Result: Result{Warning: warning}, watchers: watchers}
	if p != (Policy{}) {
		out.delivery = atOnce
	}
	var chain expander.Chain
	if cfg.Autoscale != nil {
		if chain, err = out.answers.newChain(cfg.Autoscale.Expander); err != nil {
			return nil, fmt.Errorf("autoscale: %w", err)
		}
	}
	d, err := drive.New(drive.Config{
		Schema: schema, Core: cfg, Expander: chain, Stopwatch: &out.cuts, Workers: out, Hooks: []drive.Hook{&out.ledger, drive.HookFunc(out.collect)},
		Inbox: func(in step.Input) { out.inputs = append(out.inputs, in) },
	})
	if err != nil {
		return nil, err
	}
	out.driver, out.Core = d, d.Core()
	return out, nil
}

// ErrOtherRules says that a recording can't be replayed exactly.
var ErrOtherRules = errors.New("replay it with a version of Berth that does, or under another policy (--emulated-version), whose decisions may differ")

// rules returns the version whose rules a replay under a policy follows. Only those of the recording
// give the recorded decisions: without a policy, a version or a feature gate that this Berth doesn't
// implement is an error, and with one a warning says what is followed instead.
func (h *Header) rules(p Policy) (v compat.Version, warning string, err error) {
	recorded := cmp.Or(h.Kubernetes, compat.V36.String())
	own, err := compat.Parse(recorded)
	unknown := strings.Join(config.NotHonoured(h.Gates), ", ")
	switch {
	case p != Policy{}:
	case err != nil:
		return 0, "", fmt.Errorf("kubernetes: %w; %w", err, ErrOtherRules)
	case unknown != "":
		return 0, "", fmt.Errorf("featureGates: the recording follows %s, which this version of Berth does not honour; %w", unknown, ErrOtherRules)
	default:
		return own, "", nil
	}
	v = cmp.Or(p.Version, own, compat.Newest)
	var warnings []string
	if v.String() != recorded {
		warnings = append(warnings, fmt.Sprintf("the recording follows the rules of Kubernetes %s, and this replay those of %s", recorded, v))
	}
	if unknown != "" {
		warnings = append(warnings, fmt.Sprintf("the recording follows the feature gates %s, which this replay does not", unknown))
	}
	return v, strings.Join(warnings, "; "), nil
}

// Plan implements drive.Workers. The plan is made when it is to be delivered, which is
// when the answers for it are known; it is one of the cluster as it was when the core
// asked all the same.
func (p *player) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	p.deliver = func() { done(compute()) }
}

// collect is a drive.HookFunc: it keeps the decisions of a Step, and shows it to those who watch.
func (p *player) collect(now time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	p.Decisions = append(p.Decisions, r.Decisions...)
	for _, watch := range p.watchers {
		watch(p.Core, now, r)
	}
}

// step plays one line of the recording.
func (p *player) step(l *line) error {
	p.inputs = nil
	for i := range l.In {
		x, err := decode(l.In[i])
		if err != nil {
			return fmt.Errorf("in[%d] (%s): %w", i, l.In[i].Kind, err)
		}
		if answer, ok := x.(step.Consulted); ok && p.delivery != asRecorded {
			answer.Number = 0 // another policy asks in another order
			x = answer
		}
		if made, ok := x.(step.PlanMade); ok {
			if p.delivery == asRecorded {
				p.answers.left, p.cuts.At = made.Plan.Answers, made.Plan.Cuts
			}
			p.deliverPlan()
		} else {
			p.inputs = append(p.inputs, x)
		}
	}
	if p.delivery == atOnce {
		p.deliverPlan()
	}
	if p.Steps > 0 && l.Time < p.last {
		return fmt.Errorf("t is %d, which is before that of the Step before, %d", l.Time, p.last)
	}
	p.last = l.Time
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
