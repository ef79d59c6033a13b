// Package bench runs one workload with kube-scheduler and with Berth in turn on
// one control plane, and measures both the same way: pods per second, CPU time
// of each component, memory, attempts and API calls.
//
//	bench.go    options, the result, and which contender runs which case when
//	cases.go    the workloads, after scheduler_perf's
//	shapes.go   their pods, volumes and nodes
//	devices.go  devices and claims for them
//	groups.go   pod groups and their pods
//	prepare.go  the state in which a run begins
//	during.go   what happens while a contender works
//	run.go      one run: one contender places the pods of one case
//	measure.go  when pods were bound, API calls, attempts
//	report.go   the result as text
//	viewers.go  another measurement: what viewers of Berth's page cost the pods
//	viewer.go   these viewers, a process of their own
//
// What is compared is time per pod of the whole control plane, so whatever both sides share is part of
// it: the API server and etcd run on the same processors. Absolute numbers are those of one machine;
// ratios and the bare loops' ceiling are what carries over.
//
// Everything is one goroutine's but the churn of a case (during.go), the counter of binds and the
// processes, which report through channels and under locks.
package bench
