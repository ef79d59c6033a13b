// Package engine answers which node is best for a class of pods.
//
// Pods that no rule can tell apart form a Class. Classes whose local rules are
// the same share a column: per node the local code and score, per group of
// structurally equal nodes an index of the best. A placement then takes the
// maximum over groups of the group's best local score plus what the group
// rules add, and evaluates one by one the nodes that are exceptional for this class.
//
// Ties are broken by a rank that mixes the node's name with the local
// signature and the seed: deterministic, without a favourite node, and
// independent of the order in which nodes came.
//
// Where things stand:
//
//	engine.go     Engine: one profile's classes and columns over one state
//	class.go      Class: which pods are one
//	rules.go      the rules that plugins made for a class, and when they are made anew
//	column.go     the local answers of every node, brought up to date by the journal
//	enter.go      all nodes at once into a column that is new
//	block.go      nodes evaluated together
//	groups.go     a column's groups of structurally equal nodes
//	tree.go       the index of a group: which node is best
//	key.go        what the index compares, and the limits of scores
//	view.go       what the group rules of one class make of a column
//	narrow.go     classes that name their nodes, which have no column
//	best.go       the best node, and placing a pod there
//	failing.go    errors of rules, which end attempts
//	among.go      the best of the nodes that extenders allow
//	private.go    when a class gets a column of its own
//	beside.go     where pods that claim devices fit beside those that keep some
//	preempt.go    where preemption helps
//	nodefilter.go one node by the rules themselves, without any cache
//	wake.go       whether changes let a waiting class in
//	diagnose.go   why a class fits nowhere
//	answers.go, scores.go, breakdown.go, evaluations.go   what people and tests ask
//
// An engine belongs to one goroutine, that of its state. Every answer reads the state
// as it is: caches follow the journal, so that nobody has to tell the engine of a
// change. What-ifs are undone before a question returns.
package engine
