package leader

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// This file is what a process calls itself in the Lease.

// podName names an environment variable with the name of the pod that this process runs in. The chart sets it where
// the hostname isn't that name: in pods that use their node's network.
const podName = "POD_NAME"

// longestName is how many characters a pod's name may have in an identity. Hostnames have no more, and events at most
// 128 for who reports them.
const longestName = 63

// Identity returns a name for this process in the Lease and in events: the pod or the host, and a
// part that no other process has, as kube-scheduler's. A container that is restarted has the
// host and the PID that it had before, and is another process all the same.
func Identity() (string, error) {
	name := os.Getenv(podName)
	if name == "" || len(name) > longestName {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("reading the hostname: %w", err)
		}
		name = host
	}
	return name + "_" + string(uuid.NewUUID()), nil
}

// PodNamespace returns the namespace of the pod that this process runs in, "" when it runs in
// none or its service account isn't mounted.
func PodNamespace() string {
	raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
