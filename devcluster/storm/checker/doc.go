// Package checker watches a cluster on a bad day from its API alone, and says what broke. It
// shares no code with Berth, and knows nothing of what goes on inside it.
//
//	history.go   what the API has shown: lives of pods and nodes, in resource versions
//	rules.go     what must hold while the storm is on
//	rest.go      what must hold when the cluster has come to rest
//	devices.go   what must hold of claims and of the devices that they have
//	gangs.go     how far the gangs among the pods are
//	purchases.go how many nodes the groups of whole-node pods may have
//	watch.go     the watches that fill a History
//
// A History is pure: times come in, and nothing in it waits. A watch that ends with 410, or
// an API server that starts again, leaves a gap in what was seen. What happened within a gap
// is known only to lie between two resource versions, and a rule that compares resource
// versions finds a violation only where the order is certain.
package checker
