// Package ruletest lets the tests of a plugin be tables: which pod, which
// cluster, which answer for every node. It asks the plugin through the contract
// that the engine uses (framework.Plugin), without the engine's classes and
// caches, and checks on the way what every plugin owes to the contract.
package ruletest
