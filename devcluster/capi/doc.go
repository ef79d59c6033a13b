// Package capi plays Cluster API on a dev cluster: its controllers, and an infrastructure whose
// machines are simulated nodes.
//
//	definitions.go  Cluster API's own CustomResourceDefinitions
//	machines.go     what the controllers do in a pass
//	infra.go        machines that become nodes, or fail
//
// The objects are read and written as Cluster API's own types, and the API server checks them by its
// definitions: what Berth relies on is what these say.
package capi
