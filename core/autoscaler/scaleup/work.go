package scaleup

// Work counts what plans have done, so that it can be bounded, and be measured without a clock.
type Work struct {
	Nodes    int // that were added to the state, each with its daemon pods
	Asked    int // pairs of a class and a group that the rules were asked about
	Packings int // of pending pods on nodes of one group
	Tried    int // runs of pods on nodes of one group, and nodes that were added for one of them
	Gangs    int // for pod groups: members and answers for nodes, counted roughly
}

// Work returns what the packer has done so far.
func (p *Packer) Work() Work { return p.work }
