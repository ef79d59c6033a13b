// Package api serves /api/v1alpha1/: what people, the command line and the web page read. The types are
// in edge/api/v1alpha1.
//
//	api.go          the handler: its paths, and how an answer is written
//	questions.go    what is asked of the core, how often, and for how long an answer is shared
//	line.go         which question is next
//	viewer.go       whose pods a viewer may read
//	query.go        parameters, and pages
//	nearest.go      names that somebody may have meant
//	meta.go, overview.go, money.go, nodes.go, pods.go, pod.go, groups.go, podgroup.go, devices.go,
//	decisions.go, shadow.go, whatif.go, values.go
//	                the answers
//	series.go       gauges over time, in memory
//	stream.go       server-sent events
//	turns.go        whose answer is made next
//
// What must hold:
//   - the core is asked only when somebody looks, one question at a time, and for at most 1/150 of
//     its time, or more where a question takes over 27 ms (questions.go); viewers of one moment share its answer;
//   - memory, streams and answers in the making are bounded, whatever is asked; a viewer that reads
//     slowly holds up nobody, and one who asks for much waits for himself (turns.go, line.go);
//   - no name of a pod reaches a viewer who may not list pods in its namespace.
package api
