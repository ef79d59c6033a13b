package config

import "slices"

// This file has the flags of Cluster Autoscaler that Berth doesn't honour, with those of klog that
// it has besides.

// inTree is why flags of built-in providers have no effect.
const inTree = "it belongs to one of Cluster Autoscaler's built-in cloud providers; pass it to the process that serves that provider (docs/external-providers.md)"

// ofAutoscaler returns Cluster Autoscaler's flags that Berth knows and doesn't honour, each with why.
func ofAutoscaler() []ForeignFlag {
	return slices.Concat(ofItsAPI(), ofScaleUp(), ofScaleDown(), ofHeadroom(), ofProviders())
}

// ofItsAPI returns the flags about the API server and the configuration.
func ofItsAPI() []ForeignFlag {
	return []ForeignFlag{
		noEffect("string", "cluster-name", "", inTree),
		noEffect("int", "kube-client-burst", "10", "the autoscaler's API calls have their own limits; --kube-api-burst limits bindings"),
		noEffect("float64", "kube-client-qps", "5", "the autoscaler's API calls have their own limits; --kube-api-qps limits bindings"),
		refuse("string", "scheduler-config-file", []string{""}, "Berth plans with its own scheduler configuration or, with --mode=autoscaler, that of the other scheduler; pass the file with --config"),
		noEffect("string", "user-agent", "cluster-autoscaler", "Berth's user agent contains its version"),
	}
}

// ofScaleUp returns the flags about buying nodes.
func ofScaleUp() []ForeignFlag {
	const parallel = "one core is enough for a plan"
	return []ForeignFlag{
		refuse("bool", "scale-up-from-zero", []string{"true"}, "Berth also scales up when no node is ready; remove it, and limit the groups with --nodes or --max-nodes-total"),
		noEffect("bool", "parallel-scale-up", "false", "node groups are always scaled up in parallel, and each group's scale-ups in sequence"),
		noEffect("bool", "salvo-scale-up", "false", "one plan scales up for all pending pods, in as many node groups as they need"),
		noEffect("duration", "salvo-scale-up-budget", "1m0s", "one plan scales up for all pending pods; --max-binpacking-time limits it"),
		refuse("string", "estimator", []string{"binpacking"}, "Berth packs pods on nodes with the rules that it schedules with; remove it"),
		noEffect("bool", "fastpath-binpacking-enabled", "false", "pods without constraints across nodes are always packed by count, not one by one"),
		noEffect("bool", "enable-inter-pod-affinity-hostname-fast-path", "false", "pod affinity is as fast as other rules"),
		noEffect("duration", "pending-pods-batching-timeout", "4m0s", "pods that fit on existing nodes are placed before a plan is made; --max-binpacking-time limits the plan"),
		noEffect("bool", "enable-graceful-degradation", "false", "a plan that runs out of time still adds the nodes decided on by then (--max-binpacking-time)"),
		noEffect("bool", "scaleup-simulation-for-skipped-node-groups-enabled", "false", "berth explain pod shows for every node group why it was not scaled up"),
		refuse("bool", "enable-proactive-scaleup", []string{"false"}, "nodes are added for existing pods only; remove it, and use a CapacityBuffer to reserve room for expected pods (docs/headroom.md)"),
		noEffect("int", "pod-injection-limit", "5000", "no pods are injected"),
		refuse("bool", "force-ds", []string{"false"}, "a node group whose nodes are too small for all DaemonSet pods is still scaled up, as is Cluster Autoscaler's default; remove it, and use larger nodes"),
		noEffect("bool", "scale-from-unschedulable", "false", "the templates of new nodes are never cordoned"),
		noEffect("bool", "async-node-groups", "false", "Berth does not create or delete node groups"),
		noEffect("duration", "node-info-cache-expire-time", "87600h0m0s", "node templates are read again for every plan"),
		noEffect("bool", "force-delete-failed-nodes", "false", "failed instances are always deleted, regardless of their group's minimum size"),
		noEffect("bool", "enable-csi-node-aware-scheduling", "false", "new nodes are always planned with their CSI drivers and attach limits"),
		refuse("bool", "capacity-quotas-enabled", []string{"false"}, "CapacityQuotas are not supported; remove it, and set --cores-total, --memory-total and --gpu-total"),
		refuse("bool", "enable-dynamic-resource-allocation", []string{"true"}, "nodes are always added for pods with resource claims, too (docs/devices.md), as with Cluster Autoscaler 1.35 and later; remove it"),
		noEffect("int", "predicate-parallelism", "4", parallel),
		noEffect("int", "cluster-snapshot-parallelism", "16", "there are no snapshots: plans work on an incrementally updated state"),
	}
}

// ofScaleDown returns the flags about removing nodes.
func ofScaleDown() []ForeignFlag {
	const (
		fast    = "it limits a slow simulation; Berth considers every node in every plan"
		counted = "the metric is always emitted"
	)
	return []ForeignFlag{
		noEffect("int", "scale-down-non-empty-candidates-count", "30", fast),
		noEffect("float64", "scale-down-candidates-pool-ratio", "0.1", fast),
		noEffect("int", "scale-down-candidates-pool-min-count", "50", fast),
		noEffect("bool", "dynamic-node-delete-delay-after-taint-enabled", "false", "a node is checked once more after --node-delete-delay-after-taint, and stays if a pod was scheduled to it meanwhile"),
		noEffect("bool", "node-removal-latency-tracking-enabled", "false", counted),
		noEffect("bool", "max-node-skip-eval-time-tracker-enabled", "false", counted),
	}
}

// ofHeadroom returns the flags about ProvisioningRequests and CapacityBuffers.
func ofHeadroom() []ForeignFlag {
	const (
		served   = "Berth handles these objects wherever the API serves them (docs/headroom.md)"
		retries  = "no flag controls when a ProvisioningRequest is retried (docs/headroom.md)"
		together = "every plan considers all ProvisioningRequests"
	)
	return []ForeignFlag{
		noEffect("bool", "enable-provisioning-requests", "false", served),
		noEffect("bool", "capacity-buffer-controller-enabled", "false", served),
		noEffect("bool", "capacity-buffer-pod-injection-enabled", "false", served),
		noEffect("bool", "capacity-buffer-pod-dry-run-enabled", "true", "no pod templates are created for CapacityBuffers, so there is nothing to dry-run"),
		noEffect("duration", "provisioning-request-initial-backoff-time", "1m0s", retries),
		noEffect("duration", "provisioning-request-max-backoff-time", "10m0s", retries),
		noEffect("int", "provisioning-request-max-backoff-cache-size", "1000", retries),
		noEffect("bool", "check-capacity-batch-processing", "false", together),
		noEffect("int", "check-capacity-provisioning-request-max-batch-size", "10", together),
		noEffect("duration", "check-capacity-provisioning-request-batch-timebox", "10s", together),
		refuse("string", "check-capacity-processor-instance", []string{""}, "Berth handles all ProvisioningRequests of its classes; remove it, and run no other autoscaler for them"),
	}
}

// ofProviders returns the flags of providers, and of what people look at.
func ofProviders() []ForeignFlag {
	return []ForeignFlag{
		// Providers.
		noEffect("bool", "regional", "false", inTree),
		noEffect("bool", "aws-use-static-instance-list", "false", inTree),
		noEffect("bool", "bulk-mig-instances-listing-enabled", "false", inTree),
		noEffect("int", "gce-concurrent-refreshes", "1", inTree),
		noEffect("duration", "gce-mig-instances-min-refresh-wait-time", "5s", inTree),
		refuse("bool", "clusterapi-cloud-config-authoritative", []string{"false"}, "--cloud-config is always the file that the provider reads; remove it"),

		// Looking on.
		noEffect("bool", "debugging-snapshot-enabled", "false", "use berth explain instead of a snapshot, and --record to record everything"),
		noEffect("bool", "record-duplicated-events", "false", "events with the same object, reason and action are one series with a count"),
		noEffect("int", "scheduler-verbosity", "0", "scheduling and scaling share one log; set its verbosity with --v and --vmodule"),
	}
}

// ofKlog returns the flags of klog that other programs of Kubernetes have given up. Where the log
// goes is for whoever starts Berth.
func ofKlog() []ForeignFlag {
	const streams = "logs go to standard output and standard error; --logging-format and --log-* configure them"
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
