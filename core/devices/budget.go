package devices

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
)

// CostPerStep is how much of CEL's cost counts as one step: 20 microseconds, as the API takes a cost of 1,000,000
// to be a tenth of a second. That is about what it takes to try a device.
const CostPerStep = 200

// Excess says which bound kept the library from an answer. The zero value is for none.
type Excess struct {
	Combinations bool // too many were tried
	Selectors    bool // they cost too much, and most of it was of Class or Claim
	Class        string
	Claim        int // the index among the claims; it counts where Class is ""
}

// Reason says what a question about claims has come to, "" if it was answered.
func (e Excess) Reason(claims []*resourcev1.ResourceClaim) string {
	switch {
	case e.Combinations:
		return ErrTooManySteps.Error() + " were tried"
	case e.Selectors && e.Class != "":
		return "class " + e.Class + ": " + tooCostly
	case e.Selectors:
		return fmt.Sprintf("claim %s: %s", klog.KObj(claims[e.Claim]), tooCostly)
	}
	return ""
}

const tooCostly = "its selectors cost too much to evaluate on the devices of a node; they must be simpler"

// excessError is the error of a question that has hit a bound.
type excessError struct {
	excess Excess
	text   string
}

func (e *excessError) Error() string { return e.text }

// Unwrap returns what the error is.
func (e *excessError) Unwrap() error {
	if e.excess.Selectors {
		return ErrTooCostly
	}
	return ErrTooManySteps
}

// budget bounds what a question may cost, and knows no time. It is what the library sees as its context, at which
// it looks once for each device that it tries, and as its log, in which it says what each evaluation of a selector has
// cost. That is the only place where the library says so.
type budget struct {
	context.Context // has the budget as its log
	all, left       int
	claims          []*resourcev1.ResourceClaim
	spent           []spent
}

// spent is what the selectors of a class or claim have cost.
type spent struct {
	of   Excess
	cost uint64
}

func newBudget(how How, claims []*resourcev1.ResourceClaim) *budget {
	b := &budget{all: how.Steps * CostPerStep, left: how.Steps * CostPerStep, claims: claims}
	b.Context = klog.NewContext(context.Background(), logr.New(b))
	return b
}

// Deadline implements context.Context.
func (*budget) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (*budget) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (b *budget) Err() error {
	if b.left -= CostPerStep; b.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// usedUp is panicked with to leave the library, which looks at no context while it evaluates the selectors of
// devices that don't match. It may: it has no locks then, and an allocator that has failed isn't used again.
type usedUp struct{ *budget }

// catch turns the end of the budget into an error, and is deferred.
func (b *budget) catch(err *error) {
	r := recover()
	switch end, ours := r.(usedUp); {
	case ours && end.budget == b:
		*err = ErrTooCostly
	case r != nil:
		panic(r)
	}
}

// err returns the error of a question whose budget was used up, nil of another.
func (b *budget) err(node string) error {
	if excess := b.excess(); excess != (Excess{}) {
		return &excessError{excess, fmt.Sprintf("node %s: %s", node, excess.Reason(b.claims))}
	}
	return nil
}

// excess returns the bound that was hit: what most of the budget went to, whichever used up the rest.
func (b *budget) excess() Excess {
	if b.left >= 0 {
		return Excess{}
	}
	sum := 0
	for _, s := range b.spent {
		sum += int(s.cost) //nolint:gosec // at most the budget and what one evaluation may cost
	}
	if 2*sum <= b.all {
		return Excess{Combinations: true}
	}
	return slices.MaxFunc(b.spent, func(x, y spent) int { return cmp.Compare(x.cost, y.cost) }).of
}

// resultLevel is the verbosity at which the library logs what an evaluation has cost.
const resultLevel = 7

// Enabled implements logr.LogSink: at any other level the library would take time to find out what it logs.
func (*budget) Enabled(level int) bool { return level == resultLevel }

// celResult is what the library logs of an evaluation.
const celResult = "CEL result"

// Info implements logr.LogSink.
func (b *budget) Info(_ int, message string, keysAndValues ...any) {
	if message != celResult {
		return
	}
	of, cost := Excess{Selectors: true}, uint64(0)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		switch x := keysAndValues[i+1].(type) {
		case uint64:
			if keysAndValues[i] == "actualCost" {
				cost = x
			}
		case klog.ObjectRef:
			switch keysAndValues[i] {
			case "class":
				of.Class = x.Name
			case "claim":
				of.Claim = slices.IndexFunc(b.claims, func(c *resourcev1.ResourceClaim) bool { return klog.KObj(c) == x })
			}
		}
	}
	b.spend(of, cost)
}

func (b *budget) spend(of Excess, cost uint64) {
	at := slices.IndexFunc(b.spent, func(s spent) bool { return s.of == of })
	if at < 0 {
		at, b.spent = len(b.spent), append(b.spent, spent{of: of})
	}
	b.spent[at].cost += cost
	if b.left -= int(cost); b.left < 0 {
		panic(usedUp{b})
	}
}

// Init implements logr.LogSink.
func (*budget) Init(logr.RuntimeInfo) {}

// Error implements logr.LogSink.
func (*budget) Error(error, string, ...any) {}

// WithValues implements logr.LogSink.
func (b *budget) WithValues(...any) logr.LogSink { return b }

// WithName implements logr.LogSink.
func (b *budget) WithName(string) logr.LogSink { return b }
