// Package cluster holds what is: the nodes, the pods on them, node groups and
// the workloads whose selectors rules read, with the journal of every change.
//
// A State has one writer. Every mutation is a Change in its journal, and a
// Change carries what is needed to apply it again (a follower replays it) and
// to take it back (Rollback). API objects are kept by pointer and never
// changed; everything derived from one is parsed once into an immutable Pod or
// NodeInfo that several States may share.
package cluster
