// Package comparison follows, in a shadow, what Berth decides of each pod and what the other
// scheduler does with it. Nothing of what Berth decides is carried out.
//
// It has two models of the cluster. In the core's own state Berth's decisions have come true,
// as they would for a leader, until the other scheduler says otherwise: so a burst of pods is
// spread over the nodes, and the autoscaler sees which pods find no node. The truth is a state
// with what the API shows and nothing else. The other's placements are judged there, at the
// moment when they are seen and before they are taken in: so a node isn't full because of a
// decision that nobody has carried out, and both choices are scored in the same cluster.
//
//	state      is                               waits for                      then
//	none       Berth hasn't decided             a decision for a node          decided
//	                                            a decision without a node      none
//	                                            the other's placement          judged
//	decided    the pod counts as being on       the other's placement          judged
//	           the node of the decision         the pod's deletion             forgotten: onlyBerth
//	                                            GiveUp since the decision      given up: onlyBerth
//	given up   the pod counts as being on no    the other's placement          judged
//	           node, and isn't tried            a change that a rule reads     none
//	judged     the node is allowed              –                              forgotten
//	           the node isn't allowed           –                              doubted
//	doubted    the binding may have been seen   0.1, 0.3, 1, 3 and 10 s        forgotten, when it is
//	           before others that it depends    since the binding was seen     found to be allowed, or
//	           on: it is judged again                                          after the last
//
// Nothing is held for ever: a pod that the other scheduler never places counts for GiveUp, and
// a doubt ends after 10 s.
package comparison
