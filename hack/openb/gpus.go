package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/sim/trace/openb"
)

// This file repeats the measurement of "Beware of Fragmentation" (USENIX ATC 2023, section 6.2): pods
// drawn from the trace come one by one, and stay, until they have asked for 130 % of the cluster's GPUs;
// those that fit nowhere are turned away. What counts is the part of the GPUs that is allocated then.

// arrivals are the GPUs that are asked for, in percent of the cluster's.
const arrivals = 130

// published has what the paper reports, by policy.
var published = map[string]string{"random": "87.5 %", "best fit": "93.1 %"}

// fgd is what the paper's own policy reached.
const fgd = "95.4 %"

// policy places pods that arrive. It returns the allocated thousandths of GPUs.
type policy struct {
	name string
	fill func(nodes []openb.Node, pods []openb.Pod, rng *rand.Rand) (int64, error)
}

func policies() []policy {
	return []policy{
		{"random", fillPlain(byChance)},
		{"best fit", fillPlain(byLeastLeft)},
		{"Berth, default profile", fillBerth(dynamicresources.AsPublished, 2)},
		{"Berth, LeastFragmentation", fillBerth(dynamicresources.LeastFragmentation, strategyWeight)},
	}
}

// strategyWeight is the weight of DynamicResources' score: above that of all others together.
const strategyWeight = 20

// weights are those of the table of weights. 2 is the default of a score that nobody gives another.
var weights = []int64{0, 1, 2, 3, 5, 10, 20, 50}

// writeGPUs prints the table of policies.
func writeGPUs(ctx context.Context, w io.Writer, trace *openb.Trace, o *options) error {
	return writePolicies(ctx, w, trace, o, policies())
}

// writeWeights prints the table of weights. Weight 0 allocates devices by the strategy, and doesn't score.
func writeWeights(ctx context.Context, w io.Writer, trace *openb.Trace, o *options) error {
	var list []policy
	for _, weight := range weights {
		list = append(list, policy{fmt.Sprint("LeastFragmentation, weight ", weight), fillBerth(dynamicresources.LeastFragmentation, weight)})
	}
	return writePolicies(ctx, w, trace, o, list)
}

func writePolicies(ctx context.Context, w io.Writer, trace *openb.Trace, o *options, list []policy) error {
	fmt.Fprintf(w, "GPUs allocated when pods for %d %% of them have come; %d orders of arrival (FGD in the paper: %s)\n\n", arrivals, o.seeds, fgd)
	fmt.Fprintf(w, "| policy | published | mean | least | most |\n|---|---|---|---|---|\n")
	for _, p := range list {
		least, most, sum := 100.0, 0.0, 0.0
		for seed := range o.seeds {
			if err := ctx.Err(); err != nil {
				return err
			}
			part, err := fillOnce(p, trace, uint64(seed))
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			least, most, sum = min(least, part), max(most, part), sum+part
		}
		fmt.Fprintf(w, "| %s | %s | %.1f %% | %.1f %% | %.1f %% |\n", p.name, published[p.name], sum/float64(o.seeds), least, most)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// fillOnce returns the percentage of the GPUs that a policy allocates.
func fillOnce(p policy, trace *openb.Trace, seed uint64) (float64, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	allocated, err := p.fill(trace.Nodes, arriving(trace, rng), rng)
	return 100 * float64(allocated) / float64(gpus(trace.Nodes)), err
}

// gpus returns the thousandths of GPUs of nodes.
func gpus(nodes []openb.Node) (milli int64) {
	for i := range nodes {
		milli += 1000 * nodes[i].GPU
	}
	return milli
}

// arriving returns the pods of the trace in random order, and then pods drawn from it, as many as ask
// for the arrivals.
func arriving(trace *openb.Trace, rng *rand.Rand) (out []openb.Pod) {
	left := gpus(trace.Nodes) * arrivals / 100
	order := rng.Perm(len(trace.Pods))
	for i := 0; ; i++ {
		p := trace.Pods[rng.IntN(len(trace.Pods))]
		if i < len(order) {
			p = trace.Pods[order[i]]
		}
		if left -= p.NumGPU * p.GPUMilli; left < 0 {
			return out
		}
		p.Name = fmt.Sprint("p", i)
		out = append(out, p)
	}
}

// plainNode is a node as the policies see it that aren't Berth's.
type plainNode struct {
	openb.Node // what is free of it
	gpus       []int64
}

// choose returns which of the GPUs that have room a pod gets.
type choose func(n *plainNode, p *openb.Pod, fits []int, rng *rand.Rand) (gpus []int, cost float64)

// fillPlain returns a policy that takes the node where choose costs the least.
func fillPlain(choose choose) func([]openb.Node, []openb.Pod, *rand.Rand) (int64, error) {
	return func(nodes []openb.Node, pods []openb.Pod, rng *rand.Rand) (allocated int64, _ error) {
		list := make([]plainNode, len(nodes))
		for i := range nodes {
			list[i].Node = nodes[i]
			for range nodes[i].GPU {
				list[i].gpus = append(list[i].gpus, 1000)
			}
		}
		for i := range pods {
			p := &pods[i]
			var best *plainNode
			var taken []int
			lowest := 0.0
			for k := range list {
				fits, ok := list[k].fits(p)
				if !ok {
					continue
				}
				if on, cost := choose(&list[k], p, fits, rng); best == nil || cost < lowest {
					best, taken, lowest = &list[k], on, cost
				}
			}
			if best != nil {
				best.place(p, taken)
				allocated += p.NumGPU * p.GPUMilli
			}
		}
		return allocated, nil
	}
}

// fits returns the GPUs that have room for a pod's share, and whether the node has room for the pod.
func (n *plainNode) fits(p *openb.Pod) (gpus []int, ok bool) {
	for i, free := range n.gpus {
		if p.NumGPU > 0 && free >= p.GPUMilli {
			gpus = append(gpus, i)
		}
	}
	return gpus, n.CPUMilli >= p.CPUMilli && n.MemoryMiB >= p.MemoryMiB && int64(len(gpus)) >= p.NumGPU
}

func (n *plainNode) place(p *openb.Pod, gpus []int) {
	n.CPUMilli -= p.CPUMilli
	n.MemoryMiB -= p.MemoryMiB
	for _, i := range gpus {
		n.gpus[i] -= p.GPUMilli
	}
}

// byChance takes any node, and any of its GPUs.
func byChance(_ *plainNode, p *openb.Pod, fits []int, rng *rand.Rand) ([]int, float64) {
	rng.Shuffle(len(fits), func(i, k int) { fits[i], fits[k] = fits[k], fits[i] })
	return fits[:p.NumGPU], rng.Float64()
}

// byLeastLeft takes the node that has the least left of all resources, each in parts of the largest
// node's, and its fullest GPUs.
func byLeastLeft(n *plainNode, p *openb.Pod, fits []int, _ *rand.Rand) ([]int, float64) {
	var left int64
	for _, free := range n.gpus {
		left += free
	}
	for i := range fits {
		for k := i; k > 0 && n.gpus[fits[k]] < n.gpus[fits[k-1]]; k-- {
			fits[k], fits[k-1] = fits[k-1], fits[k]
		}
	}
	return fits[:p.NumGPU], float64(n.CPUMilli)/128_000 + float64(n.MemoryMiB)/(1<<20) + float64(left)/8000
}

// fillBerth returns the engine with a strategy, whose score has a weight beside the default profile's.
func fillBerth(strategy dynamicresources.Strategy, weight int64) func([]openb.Node, []openb.Pod, *rand.Rand) (int64, error) {
	return func(nodes []openb.Node, pods []openb.Pod, rng *rand.Rand) (allocated int64, _ error) {
		schema := cluster.NewSchema()
		state := cluster.New(schema)
		state.SetObject(gpuClass())
		for i := range nodes {
			state.SetNode(schema.ParseNode(bare(&nodes[i]), ""))
			if nodes[i].GPU > 0 {
				state.SetObject(gpuSlice(&nodes[i]))
			}
		}
		rules := plugins.DefaultRules(schema.Version())
		for i := range rules {
			if rules[i].Name == dynamicresources.Name {
				rules[i].Weight = weight
			}
		}
		e, err := engine.New(state, plugins.Default(schema, plugins.Options{Rules: rules, DeviceStrategy: strategy}), engine.Options{Seed: rng.Uint64()})
		if err != nil {
			return 0, err
		}
		for i := range pods {
			if claim := gpuClaim(&pods[i]); claim != nil {
				state.SetObject(claim)
			}
			pod := schema.ParsePod(claiming(&pods[i]))
			if _, ok := e.Place(e.Class(pod), pod); ok {
				allocated += pods[i].NumGPU * pods[i].GPUMilli
			} else {
				state.RemoveObject(cluster.ResourceClaimKind, namespace, pods[i].Name)
			}
		}
		return allocated, nil
	}
}

// The names of the driver, its class, and the capacity that pods share.
const (
	namespace = "openb"
	driver    = "gpu.example.com"
	capacity  = "milli"
)

func gpuClass() *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{}
	c.Name = driver
	return c
}

// bare returns a node without the extended resources that the trace's stand for GPUs.
func bare(n *openb.Node) *v1.Node {
	plain := *n
	plain.GPU = 0
	obj := plain.Object()
	obj.Status.Allocatable[v1.ResourcePods] = resource.MustParse("1000") // the trace has no bound
	return obj
}

// gpuSlice publishes the GPUs of a node. Several claims may have parts of one.
func gpuSlice(n *openb.Node) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{}
	s.Name = n.Name
	s.Spec = resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1}}
	yes := true
	for i := range n.GPU {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i), AllowMultipleAllocations: &yes,
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{capacity: {Value: *resource.NewQuantity(1000, resource.DecimalSI)}}})
	}
	return s
}

// gpuClaim returns what a pod claims, nil for nothing.
func gpuClaim(p *openb.Pod) *resourcev1.ResourceClaim {
	if p.NumGPU*p.GPUMilli == 0 {
		return nil
	}
	c := &resourcev1.ResourceClaim{}
	c.Namespace, c.Name, c.UID = namespace, p.Name, types.UID("claim-"+p.Name)
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: driver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: p.NumGPU,
		Capacity: &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{capacity: *resource.NewQuantity(p.GPUMilli, resource.DecimalSI)}}}}}
	return c
}

// claiming returns a pod with its claim.
func claiming(p *openb.Pod) *v1.Pod {
	plain := *p
	plain.NumGPU = 0
	obj := plain.Object(namespace)
	obj.UID = types.UID(p.Name)
	obj.Spec.SchedulerName = v1.DefaultSchedulerName
	if p.NumGPU*p.GPUMilli > 0 {
		obj.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &p.Name}}
	}
	return obj
}
