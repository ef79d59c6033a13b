// Package ruletest runs the tests of a plugin, which are tables: a pod, a cluster, and the
// answer for every node. It calls the plugin through the contract that the engine uses
// (framework.Plugin), without the engine's classes and caches, and checks for every case
// what the contract demands of every plugin.
//
//	table.go    tables of filters and scores
//	events.go   what a plugin says about changes: signatures, reclassification, hints
//	answer.go   how rules are called, and what every call must keep
//	cluster.go  the cluster of a case
//
// A plugin that breaks the contract fails each of its cases with the words of the contract, before
// the engine's properties find a wrong decision that is hard to trace to it.
package ruletest
