// Package live runs the core against a Kubernetes API: informers in, API calls
// out. The core runs in one goroutine; everything that waits for the network
// runs beside it and comes back as an input.
package live
