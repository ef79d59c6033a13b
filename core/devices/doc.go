// Package devices knows which devices nodes have, what of them is taken, and what claims could get
// where (dynamic resource allocation, KEP-4381). The allocator is the library that kube-scheduler uses
// (k8s.io/dynamic-resource-allocation/structured); what this package adds is that the library is asked
// once about nodes that it couldn't tell apart.
//
// An Inventory follows ResourceSlices, DeviceTaintRules and allocated ResourceClaims. For each node it
// has a Content: a number that stands for everything the library reads of the node when it allocates,
// but the names of the node and of the pools that are the node's own. Nodes of one Content give equal
// answers to equal claims, with other names in them. Contents are numbered in the order in which they
// are met, so nothing is decided by them but equality.
//
// Invariants:
//
//   - the Content of a node depends on objects only, not on how they came to be;
//   - after each Set the contents are up to date, and Changed names the nodes that have another one;
//   - the slices of a pool are known together: which of them count for a node is the library's to say.
package devices
