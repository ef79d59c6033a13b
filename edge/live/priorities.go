package live

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/step"
)

// The priorities of the expander priority are in a ConfigMap that Cluster Autoscaler's
// users have already, beside the status. The leader watches it; a change
// holds from the next plan on. What doesn't parse is ignored, and the ConfigMap gets an
// event that says so: the last priorities that did parse hold on. Without the ConfigMap
// there are none, and the expander leaves all options.

// prioritiesTimeout is how long a new leader waits for the ConfigMap to be read.
const prioritiesTimeout = 10 * time.Second

// newChain returns the expanders that the configuration names, and the priorities of
// node groups, which are nil unless priority is among them. event has an event written,
// and doesn't wait.
func newChain(o *Options, event func(step.Event)) (expander.Chain, *priorities, error) {
	if o.Core.Autoscale == nil {
		return nil, nil, nil
	}
	list, provided := o.Core.Autoscale.Expander, map[string]expander.Strategy{}
	if o.GRPCExpander != nil {
		provided[expander.GRPCName] = o.GRPCExpander
	}
	var p *priorities
	if expander.Named(list, expander.PriorityName) {
		p = &priorities{namespace: o.Namespace, event: event, log: o.Log}
		provided[expander.PriorityName] = &expander.Priority{Current: p.current.Load, Warn: p.warn}
	}
	chain, err := expander.NewChain(list, provided)
	return chain, p, err
}

// priorities keeps what the ConfigMap says. The informer writes it, the planner reads it.
type priorities struct {
	namespace string // of the ConfigMap
	event     func(step.Event)
	log       *slog.Logger
	current   atomic.Pointer[expander.Priorities] // nil for none
	object    atomic.Pointer[v1.ConfigMap]        // what the ConfigMap was last; nil for none
}

// watch follows the ConfigMap until the context ends, and returns when it was read, or
// couldn't be for the time limit. nil watches nothing.
func (p *priorities) watch(ctx context.Context, client kubernetes.Interface, limit time.Duration) error {
	if p == nil {
		return nil
	}
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(p.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, expander.PrioritiesConfigMap).String()
		}))
	h, err := f.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.set(obj.(*v1.ConfigMap)) },
		UpdateFunc: func(_, obj any) { p.set(obj.(*v1.ConfigMap)) },
		DeleteFunc: func(any) { p.gone() },
	})
	if err != nil {
		return fmt.Errorf("watching the priorities of node groups: %w", err)
	}
	f.Start(ctx.Done())
	first, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !cache.WaitFor(first, "", h.HasSyncedChecker()) && ctx.Err() == nil {
		p.log.Warn("the priorities of node groups can't be read; the expander priority leaves all options until they are", "configMap", p.namespace+"/"+expander.PrioritiesConfigMap)
	}
	return nil
}

// set takes in what the ConfigMap says now.
func (p *priorities) set(c *v1.ConfigMap) {
	p.object.Store(c)
	text, ok := c.Data[expander.PrioritiesKey]
	if !ok {
		p.warn(expander.PrioritiesInvalid, fmt.Sprintf("the ConfigMap has no key %s; the last priorities that could be read hold on", expander.PrioritiesKey))
		return
	}
	read, err := expander.ParsePriorities(text)
	if err != nil {
		p.warn(expander.PrioritiesInvalid, fmt.Sprintf("%v; the last priorities that could be read hold on", err))
		return
	}
	p.current.Store(read)
	p.log.Info("the priorities of node groups were read", "version", c.ResourceVersion)
}

// gone takes in that there is no ConfigMap any more.
func (p *priorities) gone() {
	p.object.Store(nil)
	p.current.Store(nil)
	p.log.Info("the priorities of node groups are gone; the expander priority leaves all options")
}

// warn says what is wrong with the priorities, in the log and by an event of the
// ConfigMap.
func (p *priorities) warn(reason, message string) {
	p.log.Warn("the priorities of node groups", "reason", reason, "message", message)
	if c := p.object.Load(); c != nil {
		p.event(step.Event{Kind: "ConfigMap", Namespace: c.Namespace, Name: c.Name, UID: c.UID, Warning: true, Reason: reason, Action: "Prioritizing", Message: message})
	}
}
