package core

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

type objectKey struct {
	kind            cluster.ObjectKind
	namespace, name string
}

func keyOf(o cluster.Object) objectKey {
	return objectKey{cluster.KindOf(o), o.GetNamespace(), o.GetName()}
}

// apply takes what the API says, except when it only repeats the version that
// an assumption was made on.
func (c *Core) objectSet(in step.ObjectSet, _ *step.Ready) {
	key := keyOf(in.Object)
	if key.kind == cluster.NoObject {
		return
	}
	if a, ok := c.assumed[key]; ok {
		if version := in.Object.GetResourceVersion(); version != "" && version == a.Old.GetResourceVersion() {
			return
		}
		delete(c.assumed, key)
	}
	c.state.SetObject(in.Object)
}

func (c *Core) objectGone(in step.ObjectGone, _ *step.Ready) {
	delete(c.assumed, objectKey{in.Kind, in.Namespace, in.Name})
	c.state.RemoveObject(in.Kind, in.Namespace, in.Name)
}

// assume remembers what a decision has changed in objects, to forget it if it
// can't be written.
func (c *Core) assume(p *pod, writes []cluster.ObjectChange) {
	p.writes = writes
	for _, w := range writes {
		if old, ok := c.assumed[keyOf(w.New)]; ok {
			w.Old = old.Old // what the API last said
		}
		c.assumed[keyOf(w.New)] = w
	}
}

// unassume forgets what was assumed for a pod and has not come true.
func (c *Core) unassume(p *pod) {
	for _, w := range p.writes {
		key := keyOf(w.New)
		if a, ok := c.assumed[key]; ok && a.New == w.New {
			delete(c.assumed, key)
			c.state.SetObject(a.Old)
		}
	}
	p.writes = nil
}

// claims returns the claims of a pod that have to be bound before it is.
func (c *Core) claims(p *cluster.Pod) []string {
	var out []string
	for _, ref := range p.Claims {
		if claim := c.state.Claim(p.Object.Namespace, ref.Name); claim == nil || !cluster.ClaimBound(claim) {
			out = append(out, ref.Name)
		}
	}
	return out
}
