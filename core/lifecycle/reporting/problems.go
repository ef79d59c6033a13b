package reporting

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// problems remembers what was said of objects with values that can't be taken as they
// stand. There are hardly ever any.
type problems struct {
	pods  map[types.UID]string
	nodes map[string]nodeProblem // by the node's name
	count int
}

// nodeProblem is what was said of a node. Another of its name may come.
type nodeProblem struct {
	uid  types.UID
	text string
}

func newProblems() problems {
	return problems{pods: map[types.UID]string{}, nodes: map[string]nodeProblem{}}
}

// PodProblems reports values of a pod that can't be taken as they stand.
func (m *Machine) PodProblems(t *lifecycle.Turn, obj *v1.Pod, list []cluster.Problem) {
	if len(list) == 0 {
		return
	}
	if text := fmt.Sprint(list); m.problems.pods[obj.UID] != text {
		m.problems.pods[obj.UID] = text
		m.problems.say(t, step.PodEvent(obj, "", "", text))
	}
}

// NodeProblems reports values of a node that can't be taken as they stand.
func (m *Machine) NodeProblems(t *lifecycle.Turn, obj *v1.Node, list []cluster.Problem) {
	if len(list) == 0 {
		return
	}
	if p := (nodeProblem{obj.UID, fmt.Sprint(list)}); m.problems.nodes[obj.Name] != p {
		m.problems.nodes[obj.Name] = p
		m.problems.say(t, step.NodeEvent(obj, "", "", p.text))
	}
}

func (p *problems) say(t *lifecycle.Turn, e step.Event) {
	p.count++
	e.Reporter, e.Warning, e.Reason, e.Action = step.Berth, true, "InvalidQuantity", "Reading"
	e.Message = "invalid values: " + e.Message
	t.Emit(e)
}

// PodGone forgets what was said of a pod's values.
func (m *Machine) PodGone(uid types.UID) { delete(m.problems.pods, uid) }

// NodeGone forgets what was said of a node's values.
func (m *Machine) NodeGone(name string) { delete(m.problems.nodes, name) }

// BadObjects returns of how many objects, or versions of them, problems were reported.
func (m *Machine) BadObjects() int { return m.problems.count }
