package scaledown

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// PackingProfile returns the profile by which the pods of another find homes.
func PackingProfile(p *framework.Profile) *framework.Profile { return framework.Packing(p, staying{}) }

// World returns the state in which pods have moved.
func (s *Simulator) World() *cluster.State { return s.world.State }

// UndoAll takes all moves back.
func (s *Simulator) UndoAll() {
	s.undoAll()
	s.dismiss()
}

// Repeated reports whether the last pass came to the outcome of the one before without looking.
func (s *Simulator) Repeated() bool { return s.repeated }

// Entangled reports whether some candidates are entangled.
func (s *Simulator) Entangled() bool { return slices.ContainsFunc(s.candidates, s.entangled) }

// LeastPerPass is leastPerPass.
const LeastPerPass = leastPerPass

// Order returns the names of the nodes in the order in which a pass over a world lists them, after
// changes of the world; the zero Orderer has made no pass.
func (o *Orderer) Order(world *cluster.State, changes []cluster.Change) (out []string) {
	o.follow(changes)
	o.begin(world, &autoscaler.RemovalRules{}, &autoscaler.Readiness{})
	for _, i := range o.order {
		out = append(out, world.Node(i).Name)
	}
	return out
}

// Orderer is checks.
type Orderer struct{ checks }

// Broken says what is true of the simulator that must not be.
func (s *Simulator) Broken() (out []string) {
	moved := make([]int32, s.world.Len())
	for _, c := range s.candidates {
		for _, h := range c.homes {
			if at, ok := s.world.Placed(h.pod.UID); !ok || at != h.at {
				out = append(out, fmt.Sprintf("pod %s is at %d, its home is %d", h.pod.Name(), at, h.at))
				continue
			}
			moved[h.at]++
			if s.byNode[h.at] != nil {
				out = append(out, fmt.Sprintf("pod %s has its home on a candidate", h.pod.Name()))
			}
		}
		if s.byNode[c.node] != c {
			out = append(out, "a candidate isn't found by its node")
		}
	}
	for _, g := range s.guests {
		if at, ok := s.world.Placed(g.UID); ok {
			moved[at]++
		}
	}
	s.world.Nodes(func(n *cluster.Node) {
		has := int32(0)
		if int(n.Index) < len(s.moved) {
			has = s.moved[n.Index]
		}
		if has != moved[n.Index] {
			out = append(out, fmt.Sprintf("%d pods have moved to node %s, %d are counted", moved[n.Index], n.Name, has))
		}
		primary := s.primary.Node(n.Index)
		if c := s.byNode[n.Index]; c != nil {
			if !slices.Equal(c.pods, primary.Pods) {
				out = append(out, fmt.Sprintf("candidate %s has other pods than the primary has there", n.Name))
			}
		} else if k := len(n.Pods) - int(has); k < 0 || !slices.Equal(n.Pods[:k], primary.Pods) {
			out = append(out, fmt.Sprintf("the pods of node %s aren't the primary's and, behind them, those that have moved", n.Name))
		}
	})
	return out
}
