package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file measures how soon a burst of pods brings a request for nodes: the time from the
// API's watch event of the last pod to the return of the provider's IncreaseSize that asks
// for the last node. Each pod needs a node of its own, so that the last pod needs a request
// after it; and no node comes during the measurement. Both times are of one machine's clock:
// the first is taken by a watch of this process, the second by Berth's log.

// Burst are the options of the measurement. Every field is needed.
type Burst struct {
	Berth  string // path of the berth binary
	Pods   int
	Rounds int           // each on a cluster of its own
	Limit  time.Duration // for one round
	// Out gets a line for each round, and the progress of starting the cluster.
	Out io.Writer
}

// Run measures, and prints each round and the median.
func (b Burst) Run(ctx context.Context) error {
	var all []time.Duration
	for round := range b.Rounds {
		took, err := b.round(ctx)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		all = append(all, took)
	}
	slices.Sort(all)
	fmt.Fprintf(b.Out, "\nlast of %d pods seen to launch request: p50 %d ms of %d rounds (%d to %d ms)\n",
		b.Pods, all[(len(all)-1)/2].Milliseconds(), len(all), all[0].Milliseconds(), all[len(all)-1].Milliseconds())
	return nil
}

// round returns the time that one burst takes from the last pod's event to the last request.
// The cluster is gone when it returns.
func (b Burst) round(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.Limit, fmt.Errorf("expected a node to be asked for, for each of %d pods, within %s", b.Pods, b.Limit))
	defer cancel()
	dir, err := controlplane.MakeTemp("berth-demo-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	groups := filepath.Join(dir, "groups.yaml")
	// The group is as large as the burst, so that each pod's node can be asked for.
	if err := os.WriteFile(groups, fmt.Appendf(nil, burstGroups, b.Pods), 0o600); err != nil {
		return 0, err
	}
	bed, err := startTestbed(ctx, controlplane.Options{Progress: b.Out, NoKubelets: true}, program{berth: b.Berth, dir: dir, groups: groups})
	if err != nil {
		return 0, err
	}
	defer bed.stop()
	// The watch begins before the first pod exists.
	last, err := lastAdded(ctx, bed, b.Pods)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := api.Each(ctx, b.Pods, func(ctx context.Context, i int) error {
		_, err := bed.client.CoreV1().Pods(v1.NamespaceDefault).Create(ctx, burstPod(i), metav1.CreateOptions{})
		return err
	}); err != nil {
		return 0, fmt.Errorf("creating pods: %w", err)
	}
	// The time is taken when the event comes, not when this reads it.
	var seen time.Time
	select {
	case seen = <-last:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	requests, err := bed.requests(ctx, filepath.Join(dir, "berth.log"), b.Pods)
	if err != nil {
		return 0, err
	}
	// It may be negative: a request for the last node can be on its way before this process
	// sees the event.
	took := requests[len(requests)-1].at.Sub(seen)
	fmt.Fprintf(b.Out, "%d pods created in %.1f s, %d requests for nodes; from the last pod's event to the last request, for %d nodes: %d ms\n",
		b.Pods, seen.Sub(start).Seconds(), len(requests), requests[len(requests)-1].nodes, took.Milliseconds())
	bed.usage()
	return took, nil
}

// burstGroups is the file of one node group for so many nodes, none of which comes in time.
// Nodes that came would take pods away from what is measured.
const burstGroups = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- name: burst
  max: %d
  launchDelay: {min: 10m, max: 10m}
  template:
    allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
`

// burstPod returns the i-th pod, which leaves no room for another on its node.
func burstPod(i int) *v1.Pod {
	p := &v1.Pod{}
	p.Name = fmt.Sprintf("pod-%06d", i)
	p.Labels = map[string]string{"app": "burst"}
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("7"), v1.ResourceMemory: resource.MustParse("28Gi")}}}}
	return p
}

// lastAdded returns a channel that gets the time at which a watch has shown the last of so
// many pods. The watch runs before the first pod is created, so that none is missed.
// The channel has room for the one value, so that the handler never blocks.
func lastAdded(ctx context.Context, bed *testbed, pods int) (<-chan time.Time, error) {
	last := make(chan time.Time, 1)
	var mu sync.Mutex
	added := 0
	informer := informers.NewSharedInformerFactoryWithOptions(bed.client, 0, informers.WithNamespace(v1.NamespaceDefault))
	handle := informer.Core().V1().Pods().Informer()
	if _, err := handle.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		mu.Lock()
		defer mu.Unlock()
		if added++; added == pods {
			last <- time.Now()
		}
	}}); err != nil {
		return nil, err
	}
	informer.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return last, nil
}

// request is one for nodes that the provider has taken. at is by Berth's log, in this machine's clock.
type request struct {
	at    time.Time
	nodes int
}

// scaledUp is the line that Berth logs when IncreaseSize has returned, in klog's format.
var scaledUp = regexp.MustCompile(`^I(\d{4} \d\d:\d\d:\d\d\.\d{6}).*"scaled up" group="burst" nodes=(\d+)`)

// requests waits until Berth's log has requests for so many nodes, and returns them. The log is read
// from the beginning each time: it is short.
// It also ends when a component of the cluster does.
func (bed *testbed) requests(ctx context.Context, log string, nodes int) ([]request, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		raw, err := os.ReadFile(log)
		if err != nil {
			return nil, err
		}
		found, err := readRequests(raw)
		if err != nil {
			return nil, err
		}
		sum := 0
		for _, r := range found {
			sum += r.nodes
		}
		if sum >= nodes {
			return found, nil
		}
		if err := bed.failed(); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; %d were", context.Cause(ctx), sum)
		case <-tick.C:
		}
	}
}

// readRequests reads the requests from Berth's log.
func readRequests(raw []byte) (out []request, err error) {
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		m := scaledUp.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		at, err := time.ParseInLocation("0102 15:04:05.000000", m[1], time.Local)
		nodes, err2 := strconv.Atoi(m[2])
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("reading Berth's log: %w", err)
		}
		// klog leaves the year out.
		out = append(out, request{at.AddDate(time.Now().Year(), 0, 0), nodes})
	}
	return out, lines.Err()
}
