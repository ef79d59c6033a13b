// Package externalgrpc gets node groups from another process, over Cluster Autoscaler's protocol
// for providers out of its tree, and serves any provider over the same protocol.
//
// Client is the provider that Berth calls; Server serves one; Check tries out what Berth relies
// on against any server. The messages are in protocol/, and docs/external-providers.md says what
// an operator and the author of a server need to know.
package externalgrpc
