package live

import (
	"context"
	"encoding/json"
	"sync"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/berthproject/berth/core/step"
)

// podGroups is the resource of the PodGroups whose condition is written.
var podGroups = schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups")

// headroomReporter writes the statuses of CapacityBuffers and ProvisioningRequests, and conditions of PodGroups, within
// the reporter's budget: binds never wait for it. The core has at most one write of an
// object under way.
type headroomReporter struct {
	client  dynamic.Interface
	backlog chan *job[step.StatusWrite]
}

func newHeadroomReporter(client dynamic.Interface) *headroomReporter {
	return &headroomReporter{client: client, backlog: make(chan *job[step.StatusWrite], 1<<12)}
}

// run starts the one worker: statuses are few, and none is urgent.
func (r *headroomReporter) run(ctx context.Context, wg *sync.WaitGroup) {
	serveJobs(ctx, wg, 1, r.backlog, r.write)
}

// write replaces the status. The object's UID in it makes the call fail when another object
// has the name by now.
func (r *headroomReporter) write(ctx context.Context, x step.StatusWrite) error {
	resource, status, merge := capacityBuffers.resource, any(x.Buffer), types.MergePatchType
	switch {
	case x.Request != nil:
		resource, status = provisioningRequests.resource, x.Request
	case x.PodGroup != nil: // others write other conditions
		resource, status, merge = podGroups, map[string]any{"conditions": []metav1.Condition{*x.PodGroup}}, types.StrategicMergePatchType
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": x.UID}, "status": status})
	if err != nil {
		return err
	}
	return persist(ctx, func() error {
		_, err := r.client.Resource(resource).Namespace(x.Namespace).Patch(ctx, x.Name, merge, patch, metav1.PatchOptions{}, "status")
		return err
	})
}
