// Package storm gives a cluster a bad day: a real control plane, two or three Berths behind a
// proxy each, node groups in a process behind another one, load, and a seeded plan of misfortunes,
// with a checker that watches the API by itself.
//
//	storm.go       the order of a run: calm, one misfortune after the other, rest
//	plan.go        which misfortunes, drawn from the seed
//	misfortunes.go the list of them
//	server.go      what happens to the API server and to etcd
//	network.go     what happens between Berth and the API server
//	provider.go    what happens between Berth and the node groups
//	leaders.go     what happens to the Berth that leads
//	refusals.go    what the API server refuses: requests, binds, certificates
//	names.go       objects deleted and created again under their name
//	bed.go         the cluster, the Berths and their credentials
//	berths.go      Berth processes, started again when they end
//	proxy.go       the proxies
//	load.go        pods that come and go
//	devices.go     devices, their driver, and pods that claim them, if wanted
//	report.go      what people read
//	checker/       what must hold
//
// The seed gives the same plan again, not the same run: real processes take their time. A violation that
// isn't repeated by its seed has its evidence in the Berths' logs (Options.Logs) and in the violation's
// own words, which name revisions.
//
// One goroutine plays the misfortunes, one at a time; load, checker and Berths have goroutines of their
// own. Everything that a misfortune does is undone before the next one begins, in a cluster that could work;
// one that can't be played ends the storm.
package storm
