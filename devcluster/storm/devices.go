package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/devcluster/devices"
	"github.com/berthproject/berth/devcluster/kubelets"
)

// This file is the part of a storm that has to do with devices: nodes with some, the driver that publishes,
// changes, taints and attaches them, and pods that claim them. Every kind of claim fits when the others
// have ended, so that each pod is placed in the end.

// Nodes with devices are a pool of their own: so many, with so many devices each, of which some have to be
// attached before their pod is bound.
const (
	devicePool     = "devices"
	deviceNodes    = 3
	devicesPerNode = 4
	attachedOnes   = 1
)

// sharers is how many pods use a claim that is shared.
const sharers = 3

// claimLabel is the label of a pod with a claim that others use as well; its value is the claim's name.
const claimLabel = "storm/claim"

// serves reports whether a device is one of a class of the driver.
func serves(class string, d *resourcev1.Device) bool {
	return class == devices.Class || class == devices.AttachedClass && len(d.BindingConditions) > 0
}

// makeDeviceNodes creates the nodes with devices. CPU isn't what they are short of.
func makeDeviceNodes(ctx context.Context, client kubernetes.Interface) error {
	for i := range deviceNodes {
		n := fixedNode(devicePool, i)
		n.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("32")
		if _, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a node with devices: %w", err)
		}
	}
	return nil
}

// driver is the simulated driver, which can go and come back. Its methods are for one goroutine.
type driver struct {
	client kubernetes.Interface
	end    context.CancelFunc // nil while it is away
	runs   sync.WaitGroup
}

// start makes the driver publish devices two seconds after their node is ready, change and taint them all
// the time, and attach what was allocated. A call that fails, since the API server is away, is made again by
// the driver's next look.
func (d *driver) start() {
	ctx, end := context.WithCancel(context.Background())
	d.end = end
	d.runs.Go(func() {
		o := devices.Options{PerNode: devicesPerNode, Delay: 2 * time.Second, Changes: 3 * time.Second, Taints: 5 * time.Second,
			Attached: attachedOnes, AttachDelay: time.Second, FailEvery: 5,
			Serves: func(n *v1.Node) bool { return n.Labels[poolLabel] == devicePool }}
		for ctx.Err() == nil {
			_ = devices.Run(ctx, d.client, o, func(error) {}) // it fails to begin while the API server is away
			pause(ctx, time.Second)
		}
	})
}

// stop ends the driver and leaves what it has published.
func (d *driver) stop() {
	if d.end != nil {
		d.end()
		d.runs.Wait()
		d.end = nil
	}
}

// takeDriverAway ends the driver, and with it all devices; pods keep what they have. It comes back a while
// later, and publishes them anew.
func takeDriverAway(ctx context.Context, r *run, s Step) (_ time.Time, err error) {
	r.bed.driver.stop()
	defer r.bed.driver.start()
	d, err := devices.New(r.bed.client, devicesPerNode)
	if err != nil {
		return time.Time{}, err
	}
	for i := range deviceNodes {
		if err := d.Withdraw(ctx, fixedNode(devicePool, i).Name); err != nil {
			return time.Time{}, err
		}
	}
	pause(ctx, s.Lasts)
	return time.Now(), nil
}

// killControllers kills the controller manager, which makes and frees claims, and starts it again a while
// later.
func killControllers(ctx context.Context, r *run, s Step) (time.Time, error) {
	const manager = "kube-controller-manager"
	if err := r.bed.cluster.Kill(manager); err != nil {
		return time.Time{}, err
	}
	pause(ctx, s.Lasts)
	err := r.bed.cluster.Restart(manager)
	return time.Now(), err
}

// startClaims creates the templates of claims.
func (l *load) startClaims(ctx context.Context) error {
	for name, class := range map[string]string{"one": devices.Class, "attached": devices.AttachedClass} {
		t := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec(class)}}
		if _, err := l.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, t, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a template of claims: %w", err)
		}
	}
	return nil
}

// claimSpec asks for one device of a class.
func claimSpec(class string) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "device",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}
}

// claimParts are what the load does with devices. On the mean eight of the twelve devices are in use.
func (l *load) claimParts() []loadPart {
	return []loadPart{
		{900 * time.Millisecond, func(ctx context.Context, r *rand.Rand, n int) { l.pod(ctx, templated(r, "one", n)) }},
		{4 * time.Second, func(ctx context.Context, r *rand.Rand, n int) { l.pod(ctx, templated(r, "attached", n)) }},
		{2500 * time.Millisecond, func(ctx context.Context, r *rand.Rand, n int) {
			p := deviceful(r, fmt.Sprint("extended-", n))
			one := v1.ResourceList{devices.ExtendedResource: resource.MustParse("1")}
			p.Spec.Containers[0].Resources.Requests[devices.ExtendedResource], p.Spec.Containers[0].Resources.Limits = one[devices.ExtendedResource], one
			l.pod(ctx, p)
		}},
		{5 * time.Second, l.share}, {2 * time.Second, l.sweepClaims},
	}
}

// deviceful returns a pod for the nodes with devices that runs for seconds.
func deviceful(r *rand.Rand, name string) *v1.Pod {
	p := bare(name, "100m", []string{"storm-low", "storm-middle", "storm-high"}[r.IntN(3)])
	p.Annotations[kubelets.RunFor] = fmt.Sprintf("%ds", 1+r.IntN(5))
	p.Spec.NodeSelector = map[string]string{poolLabel: devicePool}
	return p
}

// templated returns a pod with a claim of a template.
func templated(r *rand.Rand, template string, n int) *v1.Pod {
	p := deviceful(r, fmt.Sprintf("claim-%s-%d", template, n))
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "device", ResourceClaimTemplateName: &template}}
	p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "device"}}
	return p
}

// share creates a claim and the pods that use it.
func (l *load) share(ctx context.Context, r *rand.Rand, n int) {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("shared-", n), Labels: map[string]string{claimLabel: fmt.Sprint("shared-", n)}}, Spec: claimSpec(devices.Class)}
	if _, err := l.client.ResourceV1().ResourceClaims(namespace).Create(ctx, c, metav1.CreateOptions{}); err != nil {
		return // the next comes soon; pods without their claim would wait for ever
	}
	for i := range sharers {
		p := deviceful(r, fmt.Sprintf("%s-%d", c.Name, i))
		p.Labels = c.Labels
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "device", ResourceClaimName: &c.Name}}
		p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "device"}}
		l.pod(ctx, p)
	}
}

// sweepClaims deletes the shared claims that no pod uses any more. One that was created a moment ago may not have
// its pods yet.
func (l *load) sweepClaims(ctx context.Context, _ *rand.Rand, _ int) {
	claims, err := l.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: claimLabel})
	if err != nil {
		return
	}
	pods, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: claimLabel})
	if err != nil {
		return
	}
	used := sets.New[string]()
	for i := range pods.Items {
		used.Insert(pods.Items[i].Labels[claimLabel])
	}
	for i := range claims.Items {
		if c := &claims.Items[i]; !used.Has(c.Name) && time.Since(c.CreationTimestamp.Time) > 30*time.Second {
			_ = l.client.ResourceV1().ResourceClaims(namespace).Delete(ctx, c.Name, metav1.DeleteOptions{}) // the next try comes soon
		}
	}
}

// deleteClaims deletes all shared claims. A failure isn't made up for.
func (l *load) deleteClaims(ctx context.Context) {
	_ = l.client.ResourceV1().ResourceClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: claimLabel}) // the next try comes soon
}
