// Package demo shows Berth at its main job on the dev cluster: a night batch
// that scales a cluster up from nothing and back, and a production trace.
//
//	command.go      the commands and their flags
//	testbed.go      what all demos run on: a dev cluster, node groups, a Berth
//	night.go        the night batch, watched by watcher.go
//	services.go     services that follow it and are drained, watched by servicepods.go
//	openb.go        a production trace, placed
//	size.go         many nodes and pods, to measure Berth's size
//	burst.go        how soon a burst of pods brings a request for nodes
//	nodes.go        nodes and pods as informers deliver them
//	progress.go     the table that people watch
//	console.go      what Berth says about itself while a demo runs
//
// A demo is a test as well: its error says what was expected and didn't come about, and the program
// exits with 1. The night and the services have no deadline, since the machine may be
// slow: they fail when nothing moves any more (standstill), or when a process has ended. What measures
// has a limit.
package demo
