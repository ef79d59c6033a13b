package simulated

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// Seen tells of the groups of a provider in another process, for a shadow: of each the nodes that
// the API has. What the other process has ordered and not registered yet, it can't know; berth
// provider simulated says that over the externalgrpc protocol. It is to be given to nobody who asks
// for nodes.
type Seen struct{ *Provider }

var _ nodegroup.Provider = Seen{}

// Groups implements nodegroup.Provider. It lists the nodes and writes nothing.
func (s Seen) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	list, err := s.api.List(ctx, metav1.ListOptions{LabelSelector: simulatedgroup.GroupLabel})
	if err != nil {
		return nil, fmt.Errorf("listing nodes of simulated groups: %w", err)
	}
	s.mu.Lock()
	for _, g := range s.groups {
		g.instances, g.target = map[string]*instance{}, 0
	}
	for i := range list.Items {
		n := &list.Items[i]
		if g := s.groups[n.Labels[simulatedgroup.GroupLabel]]; g != nil {
			g.instances[n.Name] = &instance{registered: true}
			g.target++
		}
	}
	s.mu.Unlock()
	return s.Provider.Groups(ctx)
}
