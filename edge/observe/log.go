package observe

import (
	"context"
	"log/slog"

	"github.com/berthproject/berth/core/step"

	"k8s.io/klog/v2"
)

// levelDecision is that of decisions in the log: -v=2, as kube-scheduler's.
const levelDecision = slog.Level(-2)

// logDecisions logs the decisions of a Step, if that is wanted.
func logDecisions(log *slog.Logger, r *step.Ready) {
	if len(r.Decisions) == 0 || !log.Enabled(context.Background(), levelDecision) {
		return
	}
	for i := range r.Decisions {
		d := &r.Decisions[i]
		args := []any{"seq", d.Seq}
		for _, x := range []struct{ name, value string }{{"pod", d.Pod}, {"node", d.Node}, {"group", d.Group}, {"reason", d.Reason}} {
			if x.value != "" {
				args = append(args, x.name, reference(x.name, x.value))
			}
		}
		if d.Victims != nil {
			args = append(args, "victims", d.Victims)
		}
		log.Log(context.Background(), levelDecision, string(d.Kind), args...)
	}
}

// reference is how objects are named in logs: by namespace and name.
func reference(kind, value string) any {
	switch kind {
	case "pod":
		for i := range value {
			if value[i] == '/' {
				return klog.KRef(value[:i], value[i+1:])
			}
		}
	case "node", "group":
		return klog.KRef("", value)
	}
	return value
}
