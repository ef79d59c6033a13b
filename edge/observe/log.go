package observe

import (
	"context"
	"log/slog"
	"strings"

	"k8s.io/klog/v2"

	"github.com/berthproject/berth/core/step"
)

// levelDecision is that of decisions in the log: -v=2, as kube-scheduler's.
const levelDecision = slog.Level(-2)

// logDecisions logs the decisions of a Step, one line each, if that level is wanted.
func logDecisions(log *slog.Logger, ready *step.Ready) {
	if len(ready.Decisions) == 0 || !log.Enabled(context.Background(), levelDecision) {
		return
	}
	for i := range ready.Decisions {
		d := &ready.Decisions[i]
		args := []any{"seq", d.Seq}
		for _, x := range []struct{ name, value string }{{"pod", d.Pod}, {"node", d.Node}, {"group", d.Group}, {"podGroup", d.PodGroup}, {"reason", d.Reason}} {
			if x.value != "" {
				args = append(args, x.name, logged(x.name, x.value))
			}
		}
		if d.Members > 0 {
			args = append(args, "members", d.Members)
		}
		if d.Victims != nil {
			args = append(args, "victims", d.Victims)
		}
		log.Log(context.Background(), levelDecision, string(d.Kind), args...)
	}
}

// logged returns a value of a decision as logs have it: objects by namespace and name,
// as everywhere in Kubernetes.
func logged(key, value string) any {
	switch key {
	case "pod", "podGroup":
		if namespace, name, ok := strings.Cut(value, "/"); ok {
			return klog.KRef(namespace, name)
		}
	case "node", "group":
		return klog.KRef("", value)
	}
	return value
}
