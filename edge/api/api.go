package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berthproject/berth/core"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// Prefix is where the API is.
const Prefix = "/api/v1alpha1/"

// Options are what an API answers from.
type Options struct {
	// Ask puts a question to the core between two Steps, and reports whether it was answered before the
	// context ended.
	Ask func(ctx context.Context, question func(*core.Core)) bool
	// Ledger has the decisions.
	Ledger Ledger
	// Series are gauges over time.
	Series *Series
	// Meta returns what is known of this Berth without asking the core.
	Meta func() v1alpha1.Meta
	// Rights say whose pods a viewer may read; nil hides nothing.
	Rights *Rights
	// Prices returns why the price file isn't used as it is now, "" when it is; nil without such a file.
	Prices func() string
	// WhatIf has what-ifs answered.
	WhatIf bool
	// Outcomes is what came of runs that are over; nil where there are none, and the path isn't there.
	Outcomes *v1alpha1.OutcomeList
	// Idle says that the core has nothing else to do: it needs no time for itself between questions.
	Idle bool
	// Ended is closed when nothing more is served; nil for never.
	Ended <-chan struct{}
	// Now is the time; nil for time.Now.
	Now func() time.Time
}

// API serves Prefix. It is an http.Handler.
type API struct {
	opt       Options
	questions *questions
	rights    *Rights
	paths     map[string]path
	// rendering bounds how many answers are made at a time, and streams how many are open.
	rendering chan struct{}
	turns     *turns
	streams   *streams
	// unsent is how many bytes of answers viewers haven't read yet.
	unsent atomic.Int64
}

// path is one path of the API, below Prefix. A name that ends in / is a prefix: the rest is the object.
type path struct {
	// answer returns what is answered, for a viewer.
	answer func(*request) (any, error)
	query  []string // parameters
	// standby says that an instance that stands by answers, too.
	standby bool
}

// request is one request of a viewer.
type request struct {
	*http.Request
	viewer *viewer
	query  url.Values
	object string // the rest of the path
}

const (
	// maxRendering is how many answers are made at a time, and maxRenderingOfUser how many of one user; the others
	// wait.
	maxRendering, maxRenderingOfUser = 6, 2
	// maxUnsent is how many bytes of answers may wait for viewers to read them. What is beyond is refused.
	maxUnsent = 64 << 20
	// maxObject is how long the name of an object may be.
	maxObject = 600
)

// New returns an API.
func New(o Options) *API {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &API{opt: o, rights: o.Rights, rendering: make(chan struct{}, maxRendering), turns: newTurns(), streams: newStreams()}
	a.questions = newQuestions(o.Ask, o.Now, a.clusterTime)
	list := []string{"limit", "continue"}
	with := func(more ...string) []string { return append(more, list...) }
	a.paths = map[string]path{
		// What isn't listed here is refused by name: a mistyped parameter must not pass for one that was honoured.
		"meta":       {answer: a.meta, standby: true},
		"schema":     {answer: schema, standby: true},
		"overview":   {answer: a.overview},
		"money":      {answer: a.money},
		"series":     {answer: a.series, query: []string{"from", "step"}},
		"nodes":      {answer: a.nodes, query: with("sort", "group", "zone", "state", "reason", "q")},
		"nodes/":     {answer: a.node},
		"pods":       {answer: a.pods, query: with("state", "namespace", "owner", "node", "reason", "plugin", "q")},
		"pods/":      {answer: a.pod},
		"pending":    {answer: a.pending},
		"groups":     {answer: a.groups},
		"groups/":    {answer: a.group},
		"podgroups":  {answer: a.podGroups, query: with("namespace", "q")},
		"podgroups/": {answer: a.podGroup},
		"devices":    {answer: a.devices, query: with()},
		"decisions":  {answer: a.decisions, query: []string{"limit", "before", "since", "kind", "pod", "node", "group", "from", "to"}},
		"decisions/": {answer: a.decision},
		"shadow":     {answer: a.shadow},
		"whatif":     {answer: a.whatIf, query: []string{"remove", "pods", "like"}},
	}
	if o.Outcomes != nil {
		a.paths["outcomes"] = path{answer: func(*request) (any, error) { return o.Outcomes, nil }}
	}
	// A run that is over has no placements that a question could delay.
	if o.Idle {
		a.questions.idle = 0
	}
	return a
}

// clusterTime returns the time of the cluster when the clock of this machine has a time: the same, unless it is a run of
// another time that is over.
func (a *API) clusterTime(here time.Time) time.Time {
	if m := a.opt.Meta(); !m.Now.IsZero() {
		return m.Now.UTC()
	}
	return here
}

// Paths returns the paths of the API, for whoever grants rights: those of objects end in /*.
func (a *API) Paths() (out []string) {
	for name := range a.paths { // sorted below
		if strings.HasSuffix(name, "/") {
			name += "*"
		}
		out = append(out, Prefix+name)
	}
	out = append(out, Prefix+"stream")
	slices.Sort(out)
	return out
}

// The kinds of errors that have a status of their own.
type (
	badRequest struct{ error }
	notFound   struct{ error }
)

// bad returns an error of the request (400): it says which parameter or name is wrong, and what it must be.
func bad(format string, args ...any) error { return badRequest{fmt.Errorf(format, args...)} }

// missing returns an error about an object or a path that isn't there (404), or that the viewer may not know of: the two
// must read the same.
func missing(format string, args ...any) error { return notFound{fmt.Errorf(format, args...)} }

// noSuch says that there is no object of a name, and which names are most like it.
func noSuch(kind, name string, names []string) error {
	return missing("%s %s not found%s", kind, name, Similar("", name, names))
}

// errStandby is what an instance answers that doesn't lead.
var errStandby = errors.New("this instance is standing by; query the leader")

// standby returns errStandby with the name of the one that leads, if it is known.
func standby(leader string) error {
	if leader == "" {
		return errStandby
	}
	return fmt.Errorf("%w, %s", errStandby, leader)
}

// StandbyHeader is set on each answer of a path by an instance that stands by: a forwarder of requests looks for
// the leader then.
const StandbyHeader = "Berth-Standby"

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, errors.New("the API is read-only: use GET"))
		return
	}
	// The stream goes on for hours, so it takes no turn and has no deadline as a whole; it bounds itself (stream.go).
	if name == "stream" {
		a.stream(w, r)
		return
	}
	// The list of paths says nothing about the cluster, so that whoever mistypes one is helped.
	p, object := a.find(name)
	if p == nil {
		fail(w, http.StatusNotFound, fmt.Errorf("no such path; the API has %s", strings.Join(a.Paths(), ", ")))
		return
	}
	// What an instance that stands by answers all the same says so, too.
	if p.standby && !a.opt.Meta().Leading {
		w.Header().Set(StandbyHeader, "true")
	}
	body, err := a.body(r, p, object)
	if err != nil {
		fail(w, status(err), err)
		return
	}
	a.send(w, body)
}

// send sends an answer to a viewer, who has writeWithin to read it.
func (a *API) send(w http.ResponseWriter, body []byte) {
	size := int64(len(body))
	defer a.unsent.Add(-size)
	if a.unsent.Add(size) > maxUnsent {
		fail(w, http.StatusServiceUnavailable, errBusy)
		return
	}
	to := http.NewResponseController(w)
	// Without a deadline, a viewer who reads nothing would hold the answer until the connection breaks, and 64 MiB of such
	// answers would lock everybody else out.
	_ = to.SetWriteDeadline(time.Now().Add(writeWithin)) // where there is none, the server bounds it
	write(w, http.StatusOK, body)
	_ = to.SetWriteDeadline(time.Time{}) // the connection goes on
}

// find returns the path of a name below Prefix, and the object that the name has; nil for none.
func (a *API) find(name string) (p *path, object string) {
	if p, ok := a.paths[name]; ok && !strings.HasSuffix(name, "/") {
		return &p, ""
	}
	kind, object, ok := strings.Cut(name, "/")
	if p, known := a.paths[kind+"/"]; ok && known && object != "" {
		return &p, object
	}
	return nil, ""
}

// body returns the answer to a request as JSON. It is complete before any of it is sent, so that a viewer
// who reads slowly holds nothing.
func (a *API) body(r *http.Request, p *path, object string) ([]byte, error) {
	// Checks come in the order of what they cost: nothing, then the length of the query, then a right, then a turn. A request
	// that is refused has used no more than what came before.
	if m := a.opt.Meta(); !p.standby && !m.Leading {
		return nil, standby(m.Leader)
	}
	if len(object) > maxObject {
		return nil, bad("the name is longer than %d characters", maxObject)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("the query can't be read: %w", err)
	}
	if err := checkQuery(query, p.query); err != nil {
		return nil, badRequest{err}
	}
	ctx, cancel := context.WithTimeout(r.Context(), questionTimeout)
	defer cancel()
	// It may ask the API server, within the same deadline as the core: a slow authorizer makes an answer late, not
	// endless.
	viewer := a.rights.viewer(r.WithContext(ctx))
	end, ok := a.turns.begin(ctx, viewer.name())
	if !ok {
		return nil, errBusy
	}
	defer end()
	// A user's own turn comes before that of all users. In the other order, one user's waiting requests would hold the
	// places that others could use.
	own := &slot{among: a.rendering}
	if !own.take(ctx) {
		return nil, errBusy
	}
	defer own.leave()
	ctx = context.WithValue(ctx, slotKey{}, own)
	// From here on the request holds a slot, except while it waits for the core.
	value, err := p.answer(&request{Request: r.WithContext(ctx), viewer: viewer, query: query, object: object})
	if err != nil {
		return nil, err
	}
	if raw, ok := value.(json.RawMessage); ok {
		return raw, nil
	}
	return json.Marshal(value)
}

// status returns the code of an error.
func status(err error) int {
	switch {
	case errors.As(err, &badRequest{}):
		return http.StatusBadRequest
	case errors.As(err, &notFound{}):
		return http.StatusNotFound
	case errors.Is(err, errBusy), errors.Is(err, errStandby):
		return http.StatusServiceUnavailable
	case errors.Is(err, errTooMany):
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// Refuse answers a request with an error, as the API does.
func Refuse(w http.ResponseWriter, err error) { fail(w, http.StatusBadRequest, err) }

// fail answers with an error as JSON. One of an instance that stands by, or of one that is busy, says when to come back.
func fail(w http.ResponseWriter, code int, err error) {
	// A struct with one string always marshals.
	body, _ := json.Marshal(v1alpha1.Error{Error: err.Error()})
	if errors.Is(err, errStandby) {
		w.Header().Set(StandbyHeader, "true")
	}
	// One tick (2 s): by then the answer that others wait for is there, or a stream has ended.
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "2")
	}
	write(w, code, body)
}

// write answers with JSON and a line break, for people who use curl. That a viewer has gone is no error: nobody is left to
// be told.
func write(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	// Names in an answer are anybody's, and what it shows is this user's alone: no browser may take it for a page, and no
	// proxy may keep it for another.
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// Not appended: that would copy an answer of megabytes for one byte.
	if _, err := w.Write(body); err == nil {
		_, _ = w.Write([]byte{'\n'})
	}
}
