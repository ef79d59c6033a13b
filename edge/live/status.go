package live

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
)

// This file writes the status ConfigMap. The leader writes it, at most once in a scan interval as
// Cluster Autoscaler does, never waited for, and the latest status only. It is left when the
// process ends: the next leader goes on with it.

// lastUpdated is the annotation with the time of the status.
const lastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"

// statusKey is where the ConfigMap has the status.
const statusKey = "status"

// statusWriter keeps the ConfigMap current. A nil one does nothing.
type statusWriter struct {
	client          kubernetes.Interface
	namespace, name string
	period          time.Duration // least time between two updates
	log             *slog.Logger
	last            Status      // that was handed over last; for the goroutine that calls update
	updated         time.Time   // when that was; the same
	latest          chan Status // holds the status that waits to be written, if any
	uid             atomic.Pointer[types.UID]
	failing         bool // the last write has failed; for the goroutine that writes
}

// newStatusWriter returns a writer of the ConfigMap of a name, nil when that is "".
func newStatusWriter(client kubernetes.Interface, namespace, name string, period time.Duration, log *slog.Logger) *statusWriter {
	if name == "" {
		return nil
	}
	return &statusWriter{client: client, namespace: namespace, name: name, period: period, log: log, latest: make(chan Status, 1)}
}

// update hands a status over to be written, in the place of one that waits, unless the last
// update was less than a period ago. It is for one goroutine.
func (w *statusWriter) update(now time.Time, scaling func() explain.ScalingStatus) {
	if w == nil || now.Sub(w.updated) < w.period {
		return
	}
	s := scaling()
	w.last, w.updated = statusOf(now, &s, &w.last), now
	select {
	case <-w.latest:
	default:
	}
	w.latest <- w.last
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
				w.report(ctx, w.write(ctx, s))
			}
		}
	})
}

// report logs that writing fails, and that it works again. The next status comes soon.
func (w *statusWriter) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !w.failing:
		w.log.Warn("failed to write the autoscaler status; retrying with each new status", "configMap", w.namespace+"/"+w.name, "err", err)
	case err == nil && w.failing:
		w.log.Info("writing the autoscaler status succeeds again", "configMap", w.namespace+"/"+w.name)
	}
	w.failing = err != nil
}

// write writes a status. What else the ConfigMap has stays.
func (w *statusWriter) write(ctx context.Context, s Status) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	cm, err := maps.Get(ctx, w.name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		cm = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name}}
	} else if err != nil {
		return fmt.Errorf("reading the ConfigMap of the status: %w", err)
	}
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, lastUpdated, s.Time)
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[statusKey] = string(text)
	if missing {
		cm, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	} else {
		cm, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing the ConfigMap of the status: %w", err)
	}
	w.uid.Store(&cm.UID)
	return nil
}

// locate completes an event of the status ConfigMap with where that is; false says that none is
// written. Before the first status is written the event doesn't tell that ConfigMap from another
// of its name.
func (w *statusWriter) locate(e *step.Event) bool {
	if w == nil {
		return false
	}
	e.Namespace, e.Name = w.namespace, w.name
	if uid := w.uid.Load(); uid != nil {
		e.UID = *uid
	}
	return true
}
