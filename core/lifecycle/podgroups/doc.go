// Package podgroups takes pod groups (KEP-4671) through the core: it says which can be tried, has the
// scheduler decide on all members of one that have no node, hands what was decided to whoever follows
// single pods, has members wait for one another before they are bound, and writes the groups'
// conditions.
//
//	a group is      when                                              then
//	held            its object is missing, members are, or disagree   a change of any of that: checked again
//	to be tried     nothing holds it                                  popped from the queue: decided on
//	placed          enough members found nodes, in one decision       each is reserved for, permitted and bound
//	waiting         too few did, or some did not                      a change that may help one of its classes, or a
//	                                                                  member that comes: tried again
//
// The queue has the groups' stages (core/queue/groups.go). A member that was given a node and that a
// plugin refuses, or whose bind fails, comes back to its group, which is tried again. After a bind that
// has failed the place is kept for PermitTime (keep.go), and a gang of which some members have nodes and
// too few is tried first. Until enough others
// are past all plugins, a member with a node isn't bound, and after PermitTime it loses the node. For a gang
// that has waited for long room is kept (room.go). Whether what a plan has for a group still holds when it is carried
// out is asked in planned.go.
package podgroups
