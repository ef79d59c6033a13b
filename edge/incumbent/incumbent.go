// Package incumbent keeps Berth from doing the work of a kube-scheduler or a Cluster Autoscaler that is
// still running:
//
//	kube-scheduler      both would bind the same pods, each by its own view of what is free
//	Cluster Autoscaler  both would buy nodes for the same pods, and remove each other's nodes
//
// A scheduler is looked for before this process becomes a candidate, and again when it has become
// the leader, which may be months later; an autoscaler when it has become the leader, since one
// that stands by resizes nothing. Nothing has been written yet in either case.
//
// What this can't see: a program that runs without leader election, one whose Lease has another
// name or namespace, and one that starts while this process leads.
package incumbent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/live"
)

// Leases of the programs that Berth takes the place of, and their namespace.
const (
	SchedulerLease   = "kube-scheduler"
	AutoscalerLease  = "cluster-autoscaler" // also of a Berth with --mode=autoscaler: of both, one acts at a time
	AutoscalerStatus = "cluster-autoscaler-status"
)

// Flags that override what this package refuses.
const (
	AllowScheduler  = "allow-second-scheduler"
	AllowAutoscaler = "allow-second-autoscaler"
)

// Programs are the programs that must not be live when this process leads.
type Programs struct {
	scheduler  *watch // nil when none is looked for
	autoscaler *watch // nil when none is looked for
	status     string // name of the status ConfigMap of this process, "" when it writes none
	client     kubernetes.Interface
	log        *slog.Logger
}

// Options say which programs to look for. A program that isn't looked for may run.
type Options struct {
	Scheduler, Autoscaler bool
	// Lease is that of this process. A program that uses the same one is excluded by it.
	Lease config.LeaderElection
	// Namespace has the Lease and the status of Cluster Autoscaler.
	Namespace string
	// Status is the name of the status ConfigMap of this process, "" when it writes none.
	Status string
}

// New returns what to look for.
func New(o Options, client kubernetes.Interface, log *slog.Logger) *Programs {
	i := &Programs{client: client, log: log}
	if o.Scheduler {
		i.scheduler = i.watch(metav1.NamespaceSystem, SchedulerLease, o.Lease)
	}
	if o.Autoscaler {
		i.autoscaler, i.status = i.watch(o.Namespace, AutoscalerLease, o.Lease), o.Status
	}
	return i
}

// watch returns a watch of a Lease, nil when it is this process's own.
func (i *Programs) watch(namespace, name string, own config.LeaderElection) *watch {
	if own.Enabled && own.Namespace == namespace && own.Name == name {
		return nil
	}
	return &watch{client: i.client, namespace: namespace, name: name, log: i.log}
}

// NoScheduler returns an error when a kube-scheduler is live, which says what to do instead.
func (i *Programs) NoScheduler(ctx context.Context) error {
	if i.scheduler == nil {
		return nil
	}
	holder, err := i.live(ctx, i.scheduler, "a kube-scheduler", AllowScheduler)
	if holder == "" || err != nil {
		return err
	}
	return fmt.Errorf(`a kube-scheduler is running: %q renews the Lease %s. This Berth has a profile named %s, so both would place the same pods. Ways on:
  --shadow                       compare Berth's placements with kube-scheduler's, and write nothing (docs/shadow.md)
  another schedulerName          place only pods that name it: in profiles of --config, or in schedulerConfiguration of the chart
  leaderElection.resourceName    take over kube-scheduler's Lease, %[4]s: stand by until kube-scheduler stops (docs/migration.md)
--%[5]s overrides this check, for a kube-scheduler that has no such profile`,
		holder, i.scheduler, v1.DefaultSchedulerName, SchedulerLease, AllowScheduler)
}

// readFor is how long the provider may take to say which groups this Berth has.
const readFor = time.Minute

// NoAutoscaler returns an error when a Cluster Autoscaler is live that has groups of the provider,
// or may have some; it says what to do instead.
func (i *Programs) NoAutoscaler(ctx context.Context, provider nodegroup.Provider) error {
	if i.autoscaler == nil || provider == nil {
		return nil
	}
	holder, err := i.live(ctx, i.autoscaler, "a Cluster Autoscaler", AllowAutoscaler)
	if holder == "" || err != nil {
		return err
	}
	why, err := i.conflict(ctx, provider)
	if why == "" || err != nil {
		return err
	}
	return fmt.Errorf(`a Cluster Autoscaler is running: %q renews the Lease %s, and %s. Ways on:
  --shadow            compare Berth's decisions with Cluster Autoscaler's, and write nothing (docs/shadow.md)
  stop it             kubectl --namespace %[4]s scale deployment cluster-autoscaler --replicas 0; with --mode=autoscaler
                      Berth takes over its Lease when it stops (docs/migration.md)
  --nodes=MIN:MAX:NAME and --status-config-map-name
                      give Berth only groups that Cluster Autoscaler doesn't have, and a status of its own
                      (docs/migration.md, "Group by group")
--%[5]s overrides this check`, holder, i.autoscaler, why, i.autoscaler.namespace, AllowAutoscaler)
}

// conflict returns why this Berth can't run beside the Cluster Autoscaler that is live, "" when it
// can: that one has none of the provider's groups.
func (i *Programs) conflict(ctx context.Context, provider nodegroup.Provider) (string, error) {
	theirs, err := i.groupsOfAutoscaler(ctx)
	if err != nil {
		return fmt.Sprintf("which node groups it has isn't known: %v", err), nil
	}
	reading, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	ours, err := provider.Groups(reading)
	if err != nil {
		return "", fmt.Errorf("a Cluster Autoscaler is running (Lease %s), and whether it has node groups of this Berth can't be told: reading the provider's groups: %w", i.autoscaler, err)
	}
	var shared []string
	for _, g := range ours {
		if slices.Contains(theirs, g.ID) {
			shared = append(shared, g.ID)
		}
	}
	switch {
	case len(shared) > 0:
		slices.Sort(shared)
		return "both would resize the node groups " + enumerate(shared), nil
	case i.status == AutoscalerStatus:
		return fmt.Sprintf("both would write the status ConfigMap %s/%s, though they have no node group in common", i.autoscaler.namespace, AutoscalerStatus), nil
	}
	return "", nil
}

// enumerated is how many names a message has before it only counts the others.
const enumerated = 5

// enumerate names the first and counts the others.
func enumerate(names []string) string {
	if more := len(names) - enumerated; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "), more)
	}
	return strings.Join(names, ", ")
}

// groupsOfAutoscaler returns the names of the node groups that Cluster Autoscaler has by its status.
// Its error completes the sentence that they aren't known.
func (i *Programs) groupsOfAutoscaler(ctx context.Context) ([]string, error) {
	where := i.autoscaler.namespace + "/" + AutoscalerStatus
	cm, err := i.client.CoreV1().ConfigMaps(i.autoscaler.namespace).Get(ctx, AutoscalerStatus, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no status ConfigMap %s", where)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("not authorized to get the ConfigMap %s (403): allow it in a Role, as the chart does", where)
	case err != nil:
		return nil, fmt.Errorf("reading the ConfigMap %s: %w", where, err)
	}
	names, err := live.StatusGroups(cm)
	if err != nil {
		return nil, fmt.Errorf("the status in the ConfigMap %s: %w", where, err)
	}
	return names, nil
}

// live returns who holds a Lease and renews it, "" for nobody. Who lacks the right to know is
// warned, and runs.
func (i *Programs) live(ctx context.Context, w *watch, who, override string) (string, error) {
	holder, err := w.holder(ctx)
	if apierrors.IsForbidden(err) {
		i.log.Warn("not authorized to get a Lease (403): whether "+who+" is running isn't known, and two of them would do the same work; "+
			"allow get of this Lease in a Role, as the chart does, or give --"+override+" to leave the check out", "lease", w.String(), "err", err)
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("finding out whether %s is running, by its Lease %s: %w", who, w, err)
	}
	return holder, nil
}
