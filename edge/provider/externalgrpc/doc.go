// Package externalgrpc gets node groups from another process, over Cluster Autoscaler's protocol
// for providers out of its tree, and serves any provider over the same protocol.
//
//	config.go        where the server is, and the files of TLS of both sides
//	client.go        the provider that calls a server
//	groups.go        how it reads the groups
//	nodes.go         how it knows of which group a node is
//	server.go        a provider, served
//	prices.go        prices, served
//	convert.go       messages into values of Berth, and back
//	errors.go        errors of calls, for people and for the core
//	check.go, check_change.go
//	                 what Berth relies on, tried out
//
// What must hold: every call has a deadline; whatever a peer sends becomes a value within bounds or an
// error, never a panic; and after a call whose outcome isn't known nobody takes it for refused.
//
// Client is the provider that Berth calls; Server serves one; Check tries out what Berth relies
// on against any server. The messages are in protocol/, and docs/external-providers.md says what
// an operator and the author of a server need to know.
package externalgrpc
