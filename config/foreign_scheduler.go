package config

// This file has the flags of kube-scheduler that Berth doesn't honour.

// ofScheduler returns kube-scheduler's flags that Berth knows and doesn't honour, each with why.
func ofScheduler() []ForeignFlag {
	const labels = "Berth's metrics have the labels that docs/reference/metrics.md lists; relabel them when scraping (metric_relabel_configs)"
	return []ForeignFlag{
		refuse("string", "write-config-to", []string{""}, "Berth does not write its configuration to a file; remove it, and read the configuration of a running Berth at /configz"),
		refuse("strings", "min-compatibility-version", []string{"", "1.35", "kube=1.35", "1.36", "kube=1.36", "1.37", "kube=1.37"}, "Berth has no gates that depend on it; remove it, and set --emulated-version"),
		refuse("strings", "allow-metric-labels", []string{"", "[]"}, labels),
		refuse("string", "allow-metric-labels-manifest", []string{""}, labels),
		noEffect("string", "show-hidden-metrics-for-version", "", "Berth has no hidden metrics"),
		noEffect("string", "kube-api-content-type", "application/vnd.kubernetes.protobuf", "Berth uses protobuf for all kinds that have it"),
	}
}
