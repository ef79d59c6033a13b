package config

// This file has the flags of kube-scheduler that Berth doesn't honour.

func ofScheduler() []ForeignFlag {
	const oneVersion = "Berth has the rules of kube-scheduler 1.36 and no others; leave it out"
	const labels = "Berth's metrics have the labels that docs/reference/metrics.md lists; relabel them where they are scraped (metric_relabel_configs)"
	return []ForeignFlag{
		refuse("string", "write-config-to", []string{""}, "Berth writes no configuration; leave it out, and read the configuration of a Berth that runs at /configz"),
		refuse("strings", "emulated-version", []string{"", "1.36", "kube=1.36"}, oneVersion),
		refuse("strings", "min-compatibility-version", []string{"", "1.35", "kube=1.35", "1.36", "kube=1.36"}, oneVersion),
		refuse("strings", "allow-metric-labels", []string{"", "[]"}, labels),
		refuse("string", "allow-metric-labels-manifest", []string{""}, labels),
		noEffect("string", "show-hidden-metrics-for-version", "", "no metric of Berth's is hidden"),
		noEffect("string", "kube-api-content-type", "application/vnd.kubernetes.protobuf", "Berth chooses the encoding by the kind of the object: protobuf wherever there is one"),
	}
}
