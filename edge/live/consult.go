package live

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/berthproject/berth/core/step"
)

// Extenders are asked about the pods that concern them, and bind some of them
// (edge/extender). The methods are called by several goroutines.
type Extenders interface {
	// Concerned names the extenders that have a say in a pod, all in one string.
	Concerned(pod *v1.Pod) string
	// Ask asks the extenders about a pod and the nodes that the rules allow. Their
	// errors are in the answer.
	Ask(ctx context.Context, question step.Consult, nodes []*v1.Node) step.Consulted
	// Bind has the extender bind that does so for the pod.
	Bind(ctx context.Context, bind step.Bind) error
}

// consultant asks extenders about pods, in the order in which the core has asked: consultWorkers
// at a time of those pods that the same extenders have a say in. An extender that hangs holds up
// the pods that it has a say in and no other: whoever asks never waits, and pods of other
// extenders have workers of their own. There is one question at a time for a pod, and none is
// asked about a pod that is gone, so as many wait as pods do.
type consultant struct {
	extenders Extenders
	nodes     corelisters.NodeLister // set before run
	pods      corelisters.PodLister  // set before run
	ctx       context.Context        // set by run
	wg        *sync.WaitGroup        // set by run

	mu      sync.Mutex
	waiting map[string]*workqueue.Typed[*consultJob] // by the extenders that have a say; guarded by mu
}

// consultJob is a question, with what delivers its answer to the core.
type consultJob struct {
	question step.Consult
	answer   func(step.Consulted)
}

func newConsultant(extenders Extenders) *consultant {
	return &consultant{extenders: extenders, waiting: map[string]*workqueue.Typed[*consultJob]{}}
}

// run says until when questions are asked, and who waits for those who ask; ask may be called
// from then on.
func (c *consultant) run(ctx context.Context, wg *sync.WaitGroup) { c.ctx, c.wg = ctx, wg }

// ask takes a question, and returns at once.
func (c *consultant) ask(j consultJob) {
	who := c.extenders.Concerned(j.question.Pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	queue := c.waiting[who]
	if queue == nil {
		queue = workqueue.NewTyped[*consultJob]()
		c.waiting[who] = queue
		c.serve(queue)
	}
	queue.Add(&j)
}

// serve starts the workers that ask what is in a queue.
func (c *consultant) serve(queue *workqueue.Typed[*consultJob]) {
	context.AfterFunc(c.ctx, queue.ShutDown)
	for range consultWorkers {
		c.wg.Go(func() {
			for {
				j, ended := queue.Get()
				if ended || c.ctx.Err() != nil {
					return
				}
				j.answer(c.consult(c.ctx, j.question))
				queue.Done(j)
			}
		})
	}
}

// errGone is the answer to a question about a pod that is gone. It is an error, since the core
// may learn later that the pod is gone: it mustn't take it for one that no extender allows a
// node, and have others make room for it.
var errGone = errors.New("extenders were not called: the pod is gone")

// consult returns what the extenders say.
func (c *consultant) consult(ctx context.Context, question step.Consult) step.Consulted {
	pod, err := c.pods.Pods(question.Pod.Namespace).Get(question.Pod.Name)
	if err != nil || pod.UID != question.UID {
		return step.Consulted{UID: question.UID, Err: errGone}
	}
	return c.extenders.Ask(ctx, question, c.existing(question.Nodes))
}

// existing returns the nodes of these names that still exist, in the same order.
func (c *consultant) existing(names []string) []*v1.Node {
	out := make([]*v1.Node, 0, len(names))
	for _, name := range names {
		if n, err := c.nodes.Get(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}
