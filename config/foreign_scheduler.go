package config

import "github.com/berthproject/berth/core/compat"

// This file has the flags of kube-scheduler that Berth doesn't honour.

// ofScheduler returns kube-scheduler's flags that Berth knows and doesn't honour, each with why.
func ofScheduler() []ForeignFlag {
	const labels = "Berth's metrics have the labels that docs/reference/metrics.md lists; relabel them when scraping (metric_relabel_configs)"
	return []ForeignFlag{
		refuse("string", "write-config-to", []string{""}, "Berth does not write its configuration to a file; remove it, and read the configuration of a running Berth at /configz"),
		refuse("strings", "min-compatibility-version", minCompatibilityVersions(), "the versions that kube-scheduler "+compat.Names()+" knows are 1.33 to 1.37, as 1.36 or kube=1.36, and none of them has an effect: Berth has no feature gates that depend on it"),
		refuse("strings", "allow-metric-labels", []string{"", "[]"}, labels),
		refuse("string", "allow-metric-labels-manifest", []string{""}, labels),
		noEffect("string", "show-hidden-metrics-for-version", "", "Berth has no hidden metrics"),
		noEffect("string", "kube-api-content-type", "application/vnd.kubernetes.protobuf", "Berth uses protobuf for all kinds that have it"),
	}
}

// minCompatibilityVersions are the values of --min-compatibility-version that kube-scheduler of some version
// takes: each takes its own and the three before.
func minCompatibilityVersions() []string {
	out := []string{""}
	for minor := compat.V36 - 3; minor <= compat.Newest; minor++ {
		out = append(out, minor.String(), "kube="+minor.String())
	}
	return out
}
