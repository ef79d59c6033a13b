package page

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/term"
)

// Questions are what flags of berth simulate ask about the end of a run. Any number may be asked at once.
type Questions struct {
	Pod, PodGroup string // as namespace/name, "" for none
	Group, Node   string // "" for none
	Nodes         bool   // all nodes are to be summed up
}

// Any reports whether there is a question.
func (q *Questions) Any() bool { return *q != Questions{} }

// question is what one of the flags asks: what the arguments of berth explain would.
type question struct {
	flag string
	args []string
}

// asked returns the questions, in the order in which help lists the flags.
func (q *Questions) asked() (out []question) {
	for _, x := range []question{
		{"--explain", []string{"pod", q.Pod}}, {"--explain-podgroup", []string{"podgroup", q.PodGroup}}, {"--explain-group", []string{"group", q.Group}},
		{"--explain-node", []string{"node", q.Node}},
	} {
		if x.args[1] != "" {
			out = append(out, x)
		}
	}
	if q.Nodes {
		out = append(out, question{"--explain-nodes", []string{"nodes"}})
	}
	return out
}

// Explain writes what flags of berth simulate ask about: what berth explain writes of the same file, as text or, with an output of
// JSON, as the API's objects. The run must be over (Simulated). An error names the flag whose object isn't found; what was asked
// before it is written by then.
func (p *Played) Explain(ctx context.Context, out io.Writer, questions *Questions, output *term.Output) error {
	from := offline{p.answers(&v1alpha1.OutcomeList{}, offlineMeta(p.outcome.Name, kindScenario))}
	for _, q := range questions.asked() {
		topic, err := term.TopicOf("berth", q.args, func() (string, error) { return "default", nil })
		if err == nil {
			err = topic.Explain(ctx, out, from, output)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", q.flag, err)
		}
	}
	return nil
}

// answers returns the API of a run that is over, at its end.
func (p *Played) answers(outcomes *v1alpha1.OutcomeList, meta v1alpha1.Meta) http.Handler {
	meta.From, meta.Now, meta.Capabilities = p.from.UTC(), p.now.UTC(), v1alpha1.Capabilities{Replay: true, Outcomes: true}
	return api.New(api.Options{
		Ask:    func(_ context.Context, question func(*core.Core)) bool { question(p.core); return true },
		Ledger: p.history, Series: p.series, Idle: true, Outcomes: outcomes, Meta: func() v1alpha1.Meta { return meta },
	})
}
