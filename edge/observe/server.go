package observe

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server/flagz"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
)

// Server serves what there is to see. It is made when Berth starts, and serves while
// Berth stands by as well as when it is the leader.
type Server struct {
	Metrics *Metrics
	History *History
	// Questions are for whoever owns the core to ask it, between two Steps.
	Questions chan func(*core.Core)
	// Ready are the checks of /readyz, and Alive those of /livez and /healthz, beside the
	// server's own. They are set before Run.
	Ready, Alive []Check
	// Stopping is closed when Berth begins to end: it isn't ready from then on. It may be nil, and is
	// set before Run, as Flags is: what /flagz shows, nil for no such page.
	Stopping <-chan struct{}
	Flags    flagz.Reader
	// MayWrite reports whether the Lease lets this Berth write now; nil without leader election. It is set before Run and
	// called by several goroutines.
	MayWrite  func() bool
	shown     atomic.Pointer[Configuration] // nil before Show
	delivered atomic.Bool                   // see HandlersSynced
	log       *slog.Logger
	leader    atomic.Bool
	ready     atomic.Bool   // the leader knows the cluster
	answering chan struct{} // has a token while answerTo has a question
	health    *health
	prices    atomic.Pointer[NodePrices] // nil without --node-prices; what it points to does not change
	// About is for the API. Its series are the goroutine's that owns the core, and started is when this server
	// was made.
	About   About
	series  *api.Series
	sampled time.Time // the core isn't sampled before
	started time.Time
	// What Run has been told of the API and the page: nil and false before.
	rights *api.Rights
	whatIf bool
	page   http.Handler
}

var _ drive.Hook = (*Server)(nil)

// Check is one thing that a probe asks. Whoever may get its own path, as /readyz/NAME, is told
// the error; the others learn that it fails.
type Check struct {
	// Name is part of the path. It stays, since probes and alerts may name it.
	Name string
	// Err returns nil when all is well. It is called by several goroutines.
	Err func() error
}

// NewServer returns a server that shows no configuration yet.
func NewServer(log *slog.Logger) *Server {
	s := &Server{Metrics: NewMetrics(), History: NewHistory(keptDecisions), Questions: make(chan func(*core.Core)), answering: make(chan struct{}, 1), log: log, health: newHealth(time.Now),
		series: api.NewSeries(), started: time.Now()}
	s.Metrics.leads = s.leads
	return s
}

// Step implements drive.Hook: it counts, keeps and logs what a Step brought.
func (s *Server) Step(now time.Time, took time.Duration, inputs []step.Input, ready *step.Ready) {
	s.Metrics.Step(now, took, inputs, ready)
	s.History.Step(now, took, inputs, ready)
	s.health.step(inputs, ready)
	logDecisions(s.log, ready)
}

// State shows the server the core of the leader, which knows the cluster. It is for
// the goroutine that owns the core, now and then, and a first time when this Berth has
// become the leader.
func (s *Server) State(c *core.Core) {
	s.ready.Store(true)
	s.Metrics.State(c)
	if s.leader.Load() {
		s.sample(c)
	}
}

// BecomeLeader records that this Berth decides from now on. It isn't ready before the
// first State.
func (s *Server) BecomeLeader() {
	s.leader.Store(true)
	s.health.lead(true)
}

// StopLeading records that this Berth doesn't decide any more. Berth ends then: it doesn't lead twice.
func (s *Server) StopLeading() {
	s.leader.Store(false)
	s.health.lead(false)
}

// leads reports whether this Berth decides, and may write what it decides.
func (s *Server) leads() bool { return s.leader.Load() && (s.MayWrite == nil || s.MayWrite()) }

// HandlersSynced records that everything that exists in the cluster has been delivered to the core.
func (s *Server) HandlersSynced() { s.delivered.Store(true) }

// ask puts a question to the core; false says that the context ended before the core
// had time for it.
func (s *Server) ask(ctx context.Context, question func(*core.Core)) bool {
	select {
	case s.Questions <- question:
		return true
	case <-ctx.Done():
		return false
	}
}
