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

// The status ConfigMap has Cluster Autoscaler's name and the part of its
// content that Berth knows so far: the node groups and their counts.
const (
	StatusNamespace = "kube-system"
	StatusName      = "cluster-autoscaler-status"
)

// Status is the content of the ConfigMap's key "status".
type Status struct {
	Time             string            `json:"time"`
	AutoscalerStatus string            `json:"autoscalerStatus"`
	NodeGroups       []NodeGroupStatus `json:"nodeGroups,omitempty"`
}

// NodeGroupStatus is one group.
type NodeGroupStatus struct {
	Name   string          `json:"name"`
	Health NodeGroupHealth `json:"health"`
}

// NodeGroupHealth are a group's sizes.
type NodeGroupHealth struct {
	NodeCounts          NodeCounts `json:"nodeCounts"`
	CloudProviderTarget int        `json:"cloudProviderTarget"`
	MinSize             int        `json:"minSize"`
	MaxSize             int        `json:"maxSize"`
}

// NodeCounts count a group's nodes. Unregistered are those asked for that the
// API doesn't show.
type NodeCounts struct {
	Registered   RegisteredCounts `json:"registered"`
	Unregistered int              `json:"unregistered"`
}

// RegisteredCounts count nodes that the API shows.
type RegisteredCounts struct {
	Total        int `json:"total"`
	Ready        int `json:"ready"`
	NotStarted   int `json:"notStarted"`
	BeingDeleted int `json:"beingDeleted"`
}

// statusWriter keeps the ConfigMap current. A newer status replaces one that
// waits to be written.
type statusWriter struct {
	client kubernetes.Interface
	latest chan Status
}

func (w *statusWriter) set(now time.Time, groups []core.GroupStatus) {
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
	select {
	case <-w.latest:
	default:
	}
	w.latest <- s
}

func (w *statusWriter) run(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-w.latest:
				// A status that could not be written is soon followed by another.
				_ = w.write(ctx, s)
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
