package controlplane

import (
	"os"
	"path/filepath"
)

// auditPolicy has what service accounts of kube-system ask for, and nothing of what the answer
// is but whether they may. A watch is written when it begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
- level: None
`

// auditFlags writes the policy, and returns the API server's flags for a log at a path.
func (c *Cluster) auditFlags(log string) ([]string, error) {
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}
