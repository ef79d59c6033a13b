package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core"
)

// The status ConfigMap has Cluster Autoscaler's name and the part of its content that
// Berth knows so far: the node groups and their counts. It is for people: written at
// most once in a scan interval, never waited for, and the latest only.
const (
	StatusNamespace = "kube-system"
	StatusName      = "cluster-autoscaler-status"
)

// Status is the content of the ConfigMap's key "status".
type Status struct {
	Time             string            `json:"time"` // RFC 3339, in UTC
	AutoscalerStatus string            `json:"autoscalerStatus"`
	NodeGroups       []NodeGroupStatus `json:"nodeGroups,omitempty"`
}

// NodeGroupStatus is one group.
type NodeGroupStatus struct {
	Name   string          `json:"name"`
	Health NodeGroupHealth `json:"health"`
}

// NodeGroupHealth are a group's sizes, in nodes.
type NodeGroupHealth struct {
	NodeCounts          NodeCounts `json:"nodeCounts"`
	CloudProviderTarget int        `json:"cloudProviderTarget"`
	MinSize             int        `json:"minSize"`
	MaxSize             int        `json:"maxSize"`
}

// NodeCounts count a group's nodes. Unregistered are those asked for that the API
// doesn't have.
type NodeCounts struct {
	Registered   RegisteredCounts `json:"registered"`
	Unregistered int              `json:"unregistered"`
}

// RegisteredCounts count nodes that the API has. Total is the sum of the others.
type RegisteredCounts struct {
	Total        int `json:"total"`
	Ready        int `json:"ready"`
	NotStarted   int `json:"notStarted"`
	BeingDeleted int `json:"beingDeleted"`
}

// statusOf returns the status of groups at a time.
func statusOf(now time.Time, groups []core.GroupStatus) Status {
	s := Status{Time: now.UTC().Format(time.RFC3339), AutoscalerStatus: "Running"}
	for _, g := range groups {
		s.NodeGroups = append(s.NodeGroups, NodeGroupStatus{Name: g.ID, Health: NodeGroupHealth{
			NodeCounts: NodeCounts{
				Registered:   RegisteredCounts{g.Registered, g.Ready, g.Registered - g.Ready - g.Deleting, g.Deleting},
				Unregistered: max(g.Target-g.Registered, 0),
			},
			CloudProviderTarget: g.Target, MinSize: g.Min, MaxSize: g.Max,
		}})
	}
	return s
}

// statusWriter keeps the ConfigMap current. A nil one does nothing.
type statusWriter struct {
	client  kubernetes.Interface
	period  time.Duration // least time between two updates
	updated time.Time     // last; for the goroutine that calls update
	latest  chan Status   // holds the status that waits to be written, if any
}

func newStatusWriter(client kubernetes.Interface, period time.Duration) *statusWriter {
	return &statusWriter{client: client, period: period, latest: make(chan Status, 1)}
}

// update hands the status of the groups over to be written, in the place of one that
// waits, unless the last update was less than a period ago. It is for one goroutine.
func (w *statusWriter) update(now time.Time, groups func() []core.GroupStatus) {
	if w == nil || now.Sub(w.updated) < w.period {
		return
	}
	w.updated = now
	select {
	case <-w.latest:
	default:
	}
	w.latest <- statusOf(now, groups())
}

func (w *statusWriter) run(ctx context.Context, wg *sync.WaitGroup) {
	if w == nil {
		return
	}
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-w.latest:
				_ = w.write(ctx, s) // the next one comes soon
			}
		}
	})
}

func (w *statusWriter) write(ctx context.Context, s Status) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	maps := w.client.CoreV1().ConfigMaps(StatusNamespace)
	cm := &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: StatusNamespace, Name: StatusName},
		Data:       map[string]string{"status": string(text)},
	}
	_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	}
	return err
}
