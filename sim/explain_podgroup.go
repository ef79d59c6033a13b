package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/explain"
)

// ExplainedPodGroup is the explanation of a pod group, with its virtual time.
type ExplainedPodGroup struct {
	At time.Duration `json:"at"` // since the beginning
	explain.PodGroupExplanation
}

// ExplainPodGroup returns where a pod group, given as namespace/name, stands now; an error names pod
// groups that there are.
func (w *World) ExplainPodGroup(group string) (*ExplainedPodGroup, error) {
	namespace, name, _ := strings.Cut(group, "/")
	x, ok := w.berth.core().View().ExplainPodGroup(namespace, name)
	if ok {
		return &ExplainedPodGroup{w.now, x}, nil
	}
	names := w.berth.core().View().PodGroupNames()
	if len(names) == 0 {
		return nil, fmt.Errorf("pod group %q not found; there are no pod groups now", group)
	}
	slices.Sort(names)
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		list += ", …"
	}
	return nil, fmt.Errorf("pod group %q not found; the pod groups now are %s", group, list)
}
