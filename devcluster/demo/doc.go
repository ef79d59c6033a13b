// Package demo shows Berth at its main job on the dev cluster: a night batch
// that scales a cluster up from nothing and back, and a production trace.
package demo
