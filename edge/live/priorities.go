package live

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/follow"
)

// The priorities of the expander priority are in a ConfigMap that Cluster Autoscaler's
// users have already, beside the status. The leader watches it; a change
// holds from the next plan on. What doesn't parse is ignored, and the ConfigMap gets an
// event that says so: the last priorities that did parse hold on. Without the ConfigMap
// there are none, and the expander leaves all options.

// prioritiesTimeout is how long a new leader waits for the ConfigMap to be read.
const prioritiesTimeout = 10 * time.Second

// newChain returns the expanders that the configuration names, and the priorities of
// node groups, which are nil unless priority is among them. event writes an event,
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

// priorities keeps what the ConfigMap says. A cache's goroutine writes it, the planner reads it.
type priorities struct {
	namespace string // of the ConfigMap
	event     func(step.Event)
	log       *slog.Logger
	current   atomic.Pointer[expander.Priorities] // nil for none
	object    atomic.Pointer[v1.ConfigMap]        // what the ConfigMap was last; nil for none
}

// watch follows the ConfigMap until the context ends, and returns when it was read, or
// couldn't be for the time limit. nil watches nothing.
func (p *priorities) watch(ctx context.Context, wg *sync.WaitGroup, client kubernetes.Interface, limit time.Duration) {
	if p == nil {
		return
	}
	c := follow.New("configmaps", &v1.ConfigMap{}, client.CoreV1().ConfigMaps(p.namespace), client, follow.Options{Match: func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, expander.PrioritiesConfigMap).String()
	}})
	c.Tell(follow.Reader{Set: func(object any) { p.set(object.(*v1.ConfigMap)) }, Gone: func(any) { p.gone() }})
	wg.Go(func() { c.Run(ctx) })
	first, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.Wait(first); err != nil && ctx.Err() == nil {
		p.log.Warn("can't read the priorities of node groups; the expander priority filters out no options until it can", "configMap", p.namespace+"/"+expander.PrioritiesConfigMap)
	}
}

// set records what the ConfigMap says now.
func (p *priorities) set(c *v1.ConfigMap) {
	p.object.Store(c)
	text, ok := c.Data[expander.PrioritiesKey]
	if !ok {
		p.warn(expander.PrioritiesInvalid, fmt.Sprintf("Wrong configuration for priority expander: the ConfigMap has no key %s. Ignoring update.", expander.PrioritiesKey))
		return
	}
	read, err := expander.ParsePriorities(text)
	if err != nil {
		p.warn(expander.PrioritiesInvalid, fmt.Sprintf("Wrong configuration for priority expander: %v. Ignoring update.", err))
		return
	}
	p.current.Store(read)
	p.log.Info("loaded the priorities of node groups", "version", c.ResourceVersion)
}

// gone records that there is no ConfigMap any more.
func (p *priorities) gone() {
	p.object.Store(nil)
	p.current.Store(nil)
	p.log.Info("the priorities of node groups were deleted; the expander priority filters out no options")
}

// warn says what is wrong with the priorities, in the log and by an event of the
// ConfigMap.
func (p *priorities) warn(reason, message string) {
	p.log.Warn("priorities of node groups", "reason", reason, "message", message)
	if c := p.object.Load(); c != nil {
		p.event(step.Event{Reporter: step.Autoscaler, Kind: "ConfigMap", Namespace: c.Namespace, Name: c.Name, UID: c.UID, Warning: true, Reason: reason, Action: "Prioritizing", Message: message})
	}
}
