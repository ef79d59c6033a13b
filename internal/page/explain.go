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
	"github.com/berthproject/berth/sim/report"
)

// Explain writes what the flags of berth simulate ask about as JSON: the objects that berth explain -o json writes of the
// same file. The run must be over (Simulated).
func (p *Played) Explain(ctx context.Context, out io.Writer, questions *report.Questions) error {
	from := offline{p.answers(&v1alpha1.OutcomeList{}, offlineMeta(p.outcome.Name, kindScenario))}
	for _, q := range questions.Asked() {
		topic, err := term.TopicOf("berth", q.Args, func() (string, error) { return "default", nil })
		if err == nil {
			err = topic.Explain(ctx, out, from, term.JSONOutput())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", q.Flag, err)
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
