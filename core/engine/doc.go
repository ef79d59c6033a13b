// Package engine answers which node is best for a class of pods.
//
// Pods that no rule can tell apart form a Class. Classes whose local rules are
// the same share a column: per node the local verdict and score, per group of
// structurally equal nodes an index of the best. A placement then takes the
// maximum over groups of the group's best local score plus what the group
// rules add, and judges one by one the nodes that stand out for this class.
//
// Ties are broken by a rank that mixes the node's name with the local
// signature and the seed: deterministic, without a favourite node, and
// independent of the order in which nodes came.
package engine
