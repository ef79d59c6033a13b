package core

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/record"
)

// standingBy is the mode of a core while another instance decides: nothing is said, and
// node deletions that the API shows are that one's. A core that stands by takes no Steps;
// what a Step needs is that of the mode in which it will lead.
type standingBy struct{ mode }

func (m standingBy) standBy() mode { return m }
func (m standingBy) lead() mode    { return m.mode }

// class returns nil: a class is only made to decide by, and what it reads of the cluster would
// have to be kept up for every pod that comes and goes. BecomeLeader has all pods classified.
func (standingBy) class(*cluster.Pod) *engine.Class { return nil }

func (standingBy) reportGate(*record.Pod) {}

func (standingBy) reportHeld(*record.Pod, string, bool) {}
func (standingBy) reportProblems(*cluster.Pod)          {}

func (standingBy) nodeShown(_ *v1.Node, info *cluster.NodeInfo) *cluster.NodeInfo { return info }
