package leader

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// This file is what a process calls itself in the Lease.

// Identity returns a name for this process in the Lease and in events: the host and a
// part that no other process has, as kube-scheduler's. A container that is restarted has the
// host and the PID that it had before, and is another process all the same.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the hostname: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
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
