// Package migrate turns the flags and values of a Cluster Autoscaler into values of Berth's chart, and reports
// for each setting what becomes of it.
//
//	migrate.go     where settings come from, and what comes out
//	chart.go       values of Cluster Autoscaler's chart
//	deployment.go  a Deployment, and a plain command line
//	flags.go       what becomes of each flag
//	sidecar.go     the server of a cloud's provider, in Berth's pod
//	print.go       the values as YAML, with what differs as comments
//
// What must hold: a setting is kept, has a line that says why it isn't, or is empty; and what is printed are
// values that the chart takes.
package migrate
