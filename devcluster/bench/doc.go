// Package bench runs one workload with kube-scheduler and with Berth in turn on
// one control plane, and measures both the same way: pods per second, CPU time
// of each component, memory, attempts and API calls.
package bench
