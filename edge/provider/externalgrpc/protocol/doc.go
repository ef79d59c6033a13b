// Package protocol has the messages and the service of Cluster Autoscaler's externalgrpc
// protocol. Everything in *.pb.go is generated from externalgrpc.proto by `make generate`.
package protocol
