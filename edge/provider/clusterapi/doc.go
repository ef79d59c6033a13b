// Package clusterapi gets node groups from Cluster API: MachineDeployments, MachineSets that no
// MachineDeployment owns, and MachinePools that have the annotations of Cluster Autoscaler's
// provider of that name.
//
//	provider.go     what the provider is made of
//	discovery.go    which objects are node groups (--node-group-auto-discovery)
//	annotations.go  limits, options and price of a group
//	capacity.go     what a new node of a group looks like
//	objects.go      the objects of Cluster API, as far as they are read
//	watch.go        which versions the API server has, and the caches of the objects
//	groups.go       the groups with their instances, and of which group a node is
//	rollout.go      which groups roll out, so that none of their nodes may be chosen
//	sizes.go        how groups are made larger and smaller
//
// What Berth writes is an annotation on the Machines that are to go, and the size in the scale
// subresource of their owner. It creates and deletes no object.
//
// Locks, in the order in which they may be held together: Provider.reading, watching.mu, and
// Provider.mu or objCache.mu. Calls that change sizes hold none of them while they wait for the API
// server, so that a slow change doesn't hold up the reading of groups.
//
// Everything that is read comes from caches that watches keep up: reading the groups makes no
// call. docs/cluster-api.md says what an operator needs to know.
package clusterapi
