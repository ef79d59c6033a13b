package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has the control planes that tests share, one after the other. What must hold: a test
// has its control plane to itself, and finds it as it was when it had just been started, but for
// the accounts of Berth and what was logged. A test that needs another start, or kills a
// component, starts a control plane of its own (startClusterWithLog).

// shared is a control plane for one test after the other.
type shared struct {
	*controlplane.Cluster
	client kubernetes.Interface
	audit  string // path of the API server's audit log
	groups bool   // serves pod groups
}

// idle are the control planes that no test has.
var idle struct {
	sync.Mutex
	clusters []*shared
}

// startCluster returns a cluster that is the test's until it ends. Berth may ask there for rights
// that it hasn't got only as far as they are given.
func startCluster(t *testing.T, forbidden ...string) (*controlplane.Cluster, kubernetes.Interface) {
	t.Helper()
	return startShared(t, false, forbidden)
}

// startGroupCluster is startCluster for a cluster that serves pod groups.
func startGroupCluster(t *testing.T) (*controlplane.Cluster, kubernetes.Interface) {
	t.Helper()
	return startShared(t, true, nil)
}

func startShared(t *testing.T, groups bool, forbidden []string) (*controlplane.Cluster, kubernetes.Interface) {
	t.Helper()
	s := takeIdle(func(s *shared) bool { return s.groups == groups })
	if s == nil {
		s = &shared{audit: newAuditLog(t), groups: groups}
		var err error
		if s.Cluster, s.client, err = bringUp(t, controlplane.Options{AuditLog: s.audit, PodGroups: groups}); err != nil {
			t.Fatal(err)
		}
	}
	from, err := os.Stat(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.giveBack(t) })
	checkAudit(t, s.audit, from.Size(), forbidden)
	return s.Cluster, s.client
}

// takeIdle takes a control plane that no test has and that suits, nil if there is none.
func takeIdle(suits func(*shared) bool) *shared {
	idle.Lock()
	defer idle.Unlock()
	i := slices.IndexFunc(idle.clusters, suits)
	if i < 0 {
		return nil
	}
	s := idle.clusters[i]
	idle.clusters = slices.Delete(idle.clusters, i, i+1)
	return s
}

// giveBack leaves a control plane to the next test. Where a test has failed, or something doesn't
// go, the next one shall not have to do with it.
func (s *shared) giveBack(t *testing.T) {
	if t.Failed() {
		s.Stop()
		return
	}
	if err := s.clean(); err != nil {
		t.Logf("the control plane is given up: %v", err)
		s.Stop()
		return
	}
	idle.Lock()
	defer idle.Unlock()
	idle.clusters = append(idle.clusters, s)
}

// stopIdle stops all control planes that no test has.
func stopIdle() {
	all := func(*shared) bool { return true }
	for s := takeIdle(all); s != nil; s = takeIdle(all) {
		s.Stop()
	}
}

// startClusterWithLog starts a cluster that is stopped with the test, with an audit log at a path.
func startClusterWithLog(t *testing.T, log string) (*controlplane.Cluster, kubernetes.Interface) {
	t.Helper()
	c, client, err := bringUp(t, controlplane.Options{AuditLog: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c, client
}

// bringUp starts a cluster.
func bringUp(t *testing.T, o controlplane.Options) (*controlplane.Cluster, kubernetes.Interface, error) {
	o.Progress = &lines{t: t}
	c, err := controlplane.Start(t.Context(), o)
	if err != nil {
		return nil, nil, err
	}
	client, err := api.New(c.Config)
	if err != nil {
		c.Stop()
	}
	return c, client, err
}

// clean deletes what a cluster doesn't have when it has just been started.
func (s *shared) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config := rest.CopyConfig(s.Config)
	config.QPS = -1 // no limit
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var left []string
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = s.remove(ctx, objects)
		return len(left) == 0, err
	})
	if err != nil && len(left) > 0 {
		return fmt.Errorf("%d objects don't go, first %s: %w", len(left), left[0], err)
	}
	return err
}

// remove deletes what is of tests, and returns what was there before.
func (s *shared) remove(ctx context.Context, objects dynamic.Interface) (left []string, err error) {
	lists, err := s.client.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "delete") {
				continue
			}
			gone, err := removeKind(ctx, objects.Resource(gv.WithResource(kind.Name)))
			if err != nil {
				return nil, fmt.Errorf("deleting all %s: %w", kind.Name, err)
			}
			left = append(left, gone...)
		}
	}
	return left, nil
}

// removeKind deletes what is of tests among the objects of one kind, and returns what was there
// before.
func removeKind(ctx context.Context, kind dynamic.NamespaceableResourceInterface) (left []string, err error) {
	all, err := kind.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // its definition has just gone
	} else if err != nil {
		return nil, err
	}
	collected := map[string]bool{} // namespaces
	for i := range all.Items {
		o := &all.Items[i]
		if ofTheCluster(o) {
			continue
		}
		left = append(left, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
		in := kind.Namespace(o.GetNamespace()) // none, for what has none
		if err := dropFinalizers(ctx, in, o); err != nil {
			return nil, err
		}
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
		switch o.GetKind() {
		case "Event", "Pod": // there may be thousands, and none is the cluster's
			if !collected[o.GetNamespace()] {
				collected[o.GetNamespace()] = true
				err = in.DeleteCollection(ctx, now, metav1.ListOptions{})
			}
		default:
			if o.GetDeletionTimestamp() == nil {
				err = in.Delete(ctx, o.GetName(), now)
			}
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return nil, err
		}
	}
	return left, nil
}

// dropFinalizers takes the finalizers of tests from an object; controllers take their own.
func dropFinalizers(ctx context.Context, in dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	if !slices.ContainsFunc(o.GetFinalizers(), func(f string) bool {
		return strings.HasPrefix(f, "example.com/") || strings.Contains(f, "cluster.x-k8s.io")
	}) {
		return nil
	}
	_, err := in.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ofTheCluster reports whether an object is one that a new cluster has, or makes by itself, or is
// the account of a Berth.
func ofTheCluster(o *unstructured.Unstructured) bool {
	namespace, name := o.GetNamespace(), o.GetName()
	begins := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	switch o.GetKind() {
	case "Namespace":
		return name == v1.NamespaceDefault || begins("kube-")
	case "ServiceAccount":
		return name == "default" || namespace == metav1.NamespaceSystem
	case "Role", "RoleBinding":
		return namespace == metav1.NamespaceSystem || namespace == metav1.NamespacePublic
	case "ClusterRole", "ClusterRoleBinding":
		return begins("system:", "berth", "kubeadm:") || slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name)
	case "ConfigMap":
		return begins("kube-root-ca.crt", "extension-apiserver-authentication", "kube-apiserver-legacy")
	case "Lease":
		return namespace == metav1.NamespaceSystem && begins("apiserver-", "kube-apiserver-")
	case "Service", "Endpoints", "EndpointSlice":
		return namespace == v1.NamespaceDefault && begins("kubernetes")
	case "PriorityClass":
		return begins("system-")
	case "APIService", "FlowSchema", "PriorityLevelConfiguration", "ServiceCIDR", "IPAddress", "ControllerRevision":
		return true
	}
	return false
}
