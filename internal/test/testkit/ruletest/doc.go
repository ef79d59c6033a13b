// Package ruletest runs the tests of a plugin, which are tables: a pod, a cluster, and the
// answer for every node. It calls the plugin through the contract that the engine uses
// (framework.Plugin), without the engine's classes and caches, and checks for every case
// what the contract demands of every plugin.
package ruletest
