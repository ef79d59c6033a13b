package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthproject/berth/devcluster/account"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has every Berth run as it is deployed: by a service account that may do what
// deploy/ lets it and no more. What must hold: no call is forbidden, which each test checks
// at its end, and no right is without a call that needs it, which is checked after all tests.

// audits is the folder of the API servers' audit logs. One that was given stays, so that the
// suite can be run in parts and rights be compared after the last.
var (
	audits = flag.String("audits", "", "folder to keep audit logs in")
	rights = flag.Bool("rights", false, "compare rights with all logs in -audits after these tests, which are not the whole suite")
)

// oldServer needs the right to list what Berth watches.
const oldServer = "an API server that doesn't begin a watch with what exists (feature gate WatchList)"

// rightsOfOthers are those that no test needs, with what does need them.
var rightsOfOthers = map[string]string{
	"get pods":               "a bind that conflicts: the pod is read, since an earlier try may have succeeded without an answer",
	"watch deployments.apps": "a CapacityBuffer whose scalableRef names a Deployment",
	"list capacitybuffers.autoscaling.x-k8s.io":                           oldServer,
	"list machinedeployments.cluster.x-k8s.io":                            oldServer,
	"list machinepools.cluster.x-k8s.io":                                  oldServer,
	"list machines.cluster.x-k8s.io":                                      oldServer,
	"list machinesets.cluster.x-k8s.io":                                   oldServer,
	"list csidrivers.storage.k8s.io":                                      oldServer,
	"list csinodes.storage.k8s.io":                                        oldServer,
	"list csistoragecapacities.storage.k8s.io":                            oldServer,
	"list daemonsets.apps":                                                oldServer,
	"list deployments.apps":                                               oldServer,
	"list deviceclasses.resource.k8s.io":                                  oldServer,
	"list devicetaintrules.resource.k8s.io":                               oldServer,
	"list resourceclaims.resource.k8s.io":                                 oldServer,
	"list resourceslices.resource.k8s.io":                                 oldServer,
	"get resourceclaims.resource.k8s.io":                                  "a claim that somebody else writes at the same time, and one that is taken back",
	"delete resourceclaims.resource.k8s.io":                               "such a pod whose bind has failed",
	"update resourceclaims/binding.resource.k8s.io":                       "the API server asks for it when a claim is allocated or reserved (feature gate DRAResourceClaimGranularStatusAuthorization); no request names it",
	"list podgroups.scheduling.k8s.io":                                    oldServer,
	"list jobs.batch":                                                     oldServer,
	"list namespaces":                                                     oldServer,
	"list persistentvolumeclaims":                                         oldServer,
	"list persistentvolumes":                                              oldServer,
	"list poddisruptionbudgets.policy":                                    oldServer,
	"list pods":                                                           oldServer,
	"list podtemplates":                                                   oldServer,
	"list provisioningrequests.autoscaling.x-k8s.io":                      oldServer,
	"list replicasets.apps":                                               oldServer,
	"list replicationcontrollers":                                         oldServer,
	"list services":                                                       oldServer,
	"list statefulsets.apps":                                              oldServer,
	"list storageclasses.storage.k8s.io":                                  oldServer,
	"list volumeattachments.storage.k8s.io":                               oldServer,
	"list configmaps cluster-autoscaler-priority-expander in kube-system": oldServer,
}

// asDeployed returns a kubeconfig file of the service account for Berth with some flags.
func asDeployed(t *testing.T, c *controlplane.Cluster, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := account.Create(t.Context(), c.Config, account.ConfigurationFor(flags), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// auditLog returns the path of an audit log for a cluster of the test, which fails at its end
// if Berth has asked for what it may not do, but for what is named as forbidden.
func auditLog(t *testing.T, forbidden ...string) string {
	t.Helper()
	path := newAuditLog(t)
	checkAudit(t, path, 0, forbidden)
	return path
}

// newAuditLog makes an empty audit log.
func newAuditLog(t *testing.T) string {
	t.Helper()
	f, err := os.CreateTemp(*audits, strings.ReplaceAll(t.Name(), "/", "-")+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return f.Name()
}

// checkAudit fails the test at its end if by then an audit log has, from an offset on, calls that
// Berth may not make, but for what is named as forbidden.
func checkAudit(t *testing.T, path string, from int64, forbidden []string) {
	t.Cleanup(func() {
		asked, err := readAudit(path, from)
		if err != nil {
			t.Error(err)
		}
		for _, a := range asked {
			if a.Forbidden && !slices.Contains(forbidden, a.Right.String()) {
				t.Errorf("by deploy/ (%s) Berth may not: %s", a.Configuration, a)
			}
		}
	})
}

// readAudit reads an audit log from an offset on.
func readAudit(path string, from int64) ([]account.Asked, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	asked, err := account.ReadAudit(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return asked, nil
}

// checkRights returns an error that lists the rights which no call of any test needs, unless
// rightsOfOthers has them, and what rightsOfOthers has and deploy/ hasn't.
func checkRights() error {
	logs, err := filepath.Glob(filepath.Join(*audits, "*.log"))
	if err != nil {
		return err
	}
	var asked []account.Asked
	for _, path := range logs {
		of, err := readAudit(path, 0)
		if err != nil {
			return err
		}
		asked = append(asked, of...)
	}
	var errs []error
	others := maps.Clone(rightsOfOthers)
	reported := map[string]bool{}
	for _, configuration := range account.Configurations {
		objects, err := account.Objects(configuration)
		if err != nil {
			return err
		}
		for _, r := range account.Rights(objects) {
			delete(others, r.String()) // it is there, and some runs may need it by chance
		}
		for _, r := range account.Unused(account.Rights(objects), asked) {
			_, known := rightsOfOthers[r.String()]
			if !known && !reported[r.String()] {
				reported[r.String()] = true
				errs = append(errs, fmt.Errorf("deploy/ (%s) lets Berth %s, and no test needs it: take it out, or have rightsOfOthers say what needs it", configuration, r))
			}
		}
	}
	for _, right := range slices.Sorted(maps.Keys(others)) {
		errs = append(errs, fmt.Errorf("rightsOfOthers has %s, which deploy/ doesn't have: take it out there", right))
	}
	return errors.Join(errs...)
}
