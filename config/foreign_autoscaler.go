package config

// This file has the flags of Cluster Autoscaler that Berth doesn't honour, with those of klog that
// it has besides.

func ofAutoscaler() []ForeignFlag {
	const (
		fast     = "it bounds a slow simulation; Berth looks at every node in every plan"
		inTree   = "it concerns one of Cluster Autoscaler's own providers; give it to the process that serves that provider (docs/external-providers.md)"
		served   = "Berth serves these objects wherever the API has them (docs/headroom.md)"
		retries  = "when a ProvisioningRequest is tried again doesn't depend on flags (docs/headroom.md)"
		together = "all ProvisioningRequests are looked at with every plan"
		parallel = "a plan is fast on one core"
		counted  = "the metric is always there"
	)
	return []ForeignFlag{
		noEffect("string", "cluster-name", "", inTree),
		noEffect("int", "kube-client-burst", "10", "the autoscaler's calls have budgets of their own; --kube-api-burst bounds binds"),
		noEffect("float64", "kube-client-qps", "5", "the autoscaler's calls have budgets of their own; --kube-api-qps bounds binds"),
		refuse("string", "scheduler-config-file", []string{""}, "Berth plans by the configuration that it schedules by, or, with --mode=autoscaler, that of the scheduler beside it; give the file as --config"),
		noEffect("string", "user-agent", "cluster-autoscaler", "Berth's user agent says its version"),

		// Buying nodes.
		refuse("bool", "scale-up-from-zero", []string{"true"}, "Berth also buys nodes when none is ready; leave it out, and bound the groups by --nodes or --max-nodes-total"),
		noEffect("bool", "parallel-scale-up", "false", "groups are always ordered from side by side, and one group's orders in turn"),
		noEffect("bool", "salvo-scale-up", "false", "one plan buys for all pods that wait, from as many groups as they need"),
		noEffect("duration", "salvo-scale-up-budget", "1m0s", "one plan buys for all pods that wait; --max-binpacking-time bounds it"),
		refuse("string", "estimator", []string{"binpacking"}, "Berth packs pods on nodes by the rules that it schedules by; leave it out"),
		noEffect("bool", "fastpath-binpacking-enabled", "false", "pods that look at no other node are always counted onto nodes, not placed one by one"),
		noEffect("bool", "enable-inter-pod-affinity-hostname-fast-path", "false", "affinity costs no more than other rules"),
		noEffect("duration", "pending-pods-batching-timeout", "4m0s", "pods that fit on nodes that exist are placed before a plan is made; --max-binpacking-time bounds the plan"),
		noEffect("bool", "enable-graceful-degradation", "false", "a plan that is cut short buys what it has decided by then (--max-binpacking-time)"),
		noEffect("bool", "scaleup-simulation-for-skipped-node-groups-enabled", "false", "berth explain pod says of every group why it wasn't grown"),
		refuse("bool", "enable-proactive-scaleup", []string{"false"}, "nodes are bought for pods that exist; leave it out, and have a CapacityBuffer keep room for pods that are to come (docs/headroom.md)"),
		noEffect("int", "pod-injection-limit", "5000", "no pods are made up"),
		refuse("bool", "force-ds", []string{"false"}, "a group whose nodes are too small for all daemon pods is grown all the same, as by default there; leave it out, and make the nodes larger"),
		noEffect("bool", "scale-from-unschedulable", "false", "new nodes are always planned as nodes that aren't cordoned"),
		noEffect("bool", "async-node-groups", "false", "Berth makes and deletes no node groups"),
		noEffect("duration", "node-info-cache-expire-time", "87600h0m0s", "what a new node of a group will be like is looked up for every plan"),
		noEffect("bool", "force-delete-failed-nodes", "false", "instances that failed are always deleted, whatever their group's minimum"),
		noEffect("bool", "enable-csi-node-aware-scheduling", "false", "attach limits of CSINodes always count"),
		refuse("bool", "capacity-quotas-enabled", []string{"false"}, "CapacityQuotas aren't read; leave it out, and give --cores-total, --memory-total and --gpu-total"),
		noEffect("bool", "enable-dynamic-resource-allocation", "true", "a pod with resource claims waits, with a reason that says so: Berth allocates no devices yet (docs/compatibility.md)"),
		noEffect("int", "predicate-parallelism", "4", parallel),
		noEffect("int", "cluster-snapshot-parallelism", "16", "there are no snapshots: planning follows the changes of the state"),

		// Removing nodes.
		noEffect("int", "scale-down-non-empty-candidates-count", "30", fast),
		noEffect("float64", "scale-down-candidates-pool-ratio", "0.1", fast),
		noEffect("int", "scale-down-candidates-pool-min-count", "50", fast),
		noEffect("bool", "dynamic-node-delete-delay-after-taint-enabled", "false", "a node is looked at once more after --node-delete-delay-after-taint, and stays if a pod came meanwhile"),
		noEffect("bool", "node-removal-latency-tracking-enabled", "false", counted),
		noEffect("bool", "max-node-skip-eval-time-tracker-enabled", "false", counted),

		// Headroom.
		noEffect("bool", "enable-provisioning-requests", "false", served),
		noEffect("bool", "capacity-buffer-controller-enabled", "false", served),
		noEffect("bool", "capacity-buffer-pod-injection-enabled", "false", served),
		noEffect("bool", "capacity-buffer-pod-dry-run-enabled", "true", "no pod templates are made for CapacityBuffers, so none is tried out"),
		noEffect("duration", "provisioning-request-initial-backoff-time", "1m0s", retries),
		noEffect("duration", "provisioning-request-max-backoff-time", "10m0s", retries),
		noEffect("int", "provisioning-request-max-backoff-cache-size", "1000", retries),
		noEffect("bool", "check-capacity-batch-processing", "false", together),
		noEffect("int", "check-capacity-provisioning-request-max-batch-size", "10", together),
		noEffect("duration", "check-capacity-provisioning-request-batch-timebox", "10s", together),
		refuse("string", "check-capacity-processor-instance", []string{""}, "Berth serves all ProvisioningRequests of its classes; leave it out, and run no other autoscaler for them"),

		// Providers.
		noEffect("bool", "regional", "false", inTree),
		noEffect("bool", "aws-use-static-instance-list", "false", inTree),
		noEffect("bool", "bulk-mig-instances-listing-enabled", "false", inTree),
		noEffect("int", "gce-concurrent-refreshes", "1", inTree),
		noEffect("duration", "gce-mig-instances-min-refresh-wait-time", "5s", inTree),
		refuse("bool", "clusterapi-cloud-config-authoritative", []string{"false"}, "--cloud-config always names the file that the provider reads; leave it out"),

		// Looking on.
		noEffect("bool", "debugging-snapshot-enabled", "false", "berth explain says what a snapshot would, and --record keeps everything"),
		noEffect("bool", "record-duplicated-events", "false", "events of one object, reason and action are one series, which counts them"),
		noEffect("int", "scheduler-verbosity", "0", "scheduling and scaling share one log; --v and --vmodule say how much is in it"),
	}
}

// ofKlog returns the flags of klog that other programs of Kubernetes have given up. Where the log
// goes is for whoever starts Berth.
func ofKlog() []ForeignFlag {
	const streams = "the log goes to the standard streams; --logging-format and --log-* say how"
	return []ForeignFlag{
		noEffect("bool", "add-dir-header", "false", streams),
		noEffect("bool", "alsologtostderr", "false", streams),
		noEffect("string", "log-backtrace-at", ":0", streams),
		noEffect("string", "log-dir", "", streams),
		noEffect("string", "log-file", "", streams),
		noEffect("int", "log-file-max-size", "1800", streams),
		noEffect("bool", "logtostderr", "true", streams),
		noEffect("bool", "legacy-stderr-threshold-behavior", "false", streams),
		noEffect("bool", "one-output", "false", streams),
		noEffect("bool", "skip-headers", "false", streams),
		noEffect("bool", "skip-log-headers", "false", streams),
		noEffect("string", "stderrthreshold", "INFO", streams),
	}
}
