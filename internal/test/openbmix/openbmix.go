// Package openbmix makes instances of package mix of the openb trace, for its tests and for hack/openb.
package openbmix

import (
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/mix"
	"github.com/berthproject/berth/sim/trace/openb"
)

// Resources are the dimensions of Instance, counted in milli.
var Resources = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, openb.GPUCount, openb.GPUMilli}

// prices are per hour and GPU. A core costs 0.03 and a GiB 0.004.
var prices = map[string]float64{"": 0, "T4": 0.35, "P100": 0.9, "A10": 1.0, "G2": 1.2, "V100M16": 1.8, "V100M32": 2.2, "G3": 2.5}

// Instance returns an instance of package mix: all pods of a list pending at once, and a group for each
// shape of the nodes. A pod's GPUSpec is kept.
func Instance(nodes []openb.Node, pods []openb.Pod) (classes []mix.Class, groups []mix.Group) {
	quantities := func(list v1.ResourceList) (out []int64) {
		for _, name := range Resources {
			q := list[name]
			out = append(out, q.MilliValue())
		}
		return out
	}
	seen := map[openb.Node]bool{}
	takes := map[string][]int{} // by what pods ask for
	var models []string         // by group
	for _, n := range nodes {
		n.Name = ""
		if seen[n] {
			continue
		}
		seen[n] = true
		models = append(models, n.Model)
		groups = append(groups, mix.Group{
			Price:       0.03*float64(n.CPUMilli)/1000 + 0.004*float64(n.MemoryMiB)/1024 + prices[n.Model]*float64(n.GPU),
			Allocatable: quantities(n.Object().Status.Allocatable), Room: 10_000,
		})
	}
	at := map[string]int{}
	for _, p := range pods {
		asks := fmt.Sprint(p.GPUSpec)
		if takes[asks] == nil {
			for j, model := range models {
				if len(p.GPUSpec) == 0 || asks == fmt.Sprint([]string{model}) {
					takes[asks] = append(takes[asks], j)
				}
			}
		}
		request := quantities(p.Object("x").Spec.Containers[0].Resources.Requests)
		request[2] = 1000
		key := fmt.Sprint(request, asks)
		i, ok := at[key]
		if !ok {
			i = len(classes)
			at[key] = i
			classes = append(classes, mix.Class{Request: request, Takes: takes[asks]})
		}
		classes[i].Pods++
	}
	return classes, groups
}

// Variants are the kinds of Variant.
var Variants = []string{"shares of GPUs only", "whole GPUs only", "a third bound to one model", "demand scaled", "CPU pods doubled"}

// Variant returns pods drawn from a trace, as many as it has and each any number of times, which
// then are changed:
//
//	shares of GPUs only          all pods but those with a part of a GPU are left out
//	whole GPUs only              all but those with whole ones
//	a third bound to one model   of the pods with GPUs, as far as a node of that model can hold them
//	demand scaled                a twentieth to twice as many pods, with half to twice the CPU and memory
//	CPU pods doubled             each pod without GPUs comes twice
func Variant(trace *openb.Trace, kind string, seed uint64) (out []openb.Pod) {
	rng := rand.New(rand.NewPCG(seed, 0))
	model := bindable(trace.Nodes, rng)
	pods, cpu, memory := len(trace.Pods), 0.5+1.5*rng.Float64(), 0.5+1.5*rng.Float64()
	if kind == "demand scaled" {
		pods = int((0.05 + 1.95*rng.Float64()) * float64(pods))
	}
	for range pods {
		p := trace.Pods[rng.IntN(len(trace.Pods))]
		sharing, chosen := p.NumGPU > 0 && p.GPUMilli < 1000, rng.IntN(3) == 0
		switch kind {
		case "shares of GPUs only":
			if !sharing {
				continue
			}
		case "whole GPUs only":
			if p.NumGPU == 0 || sharing {
				continue
			}
		case "a third bound to one model":
			if p.NumGPU > 0 && chosen {
				p.GPUSpec = []string{model}
			}
		case "demand scaled":
			p.CPUMilli, p.MemoryMiB = int64(float64(p.CPUMilli)*cpu), int64(float64(p.MemoryMiB)*memory)
		case "CPU pods doubled":
			if p.NumGPU == 0 {
				out = append(out, p)
			}
		}
		if holds(trace.Nodes, &p) {
			out = append(out, p)
		}
	}
	return out
}

// bindable draws a model of GPUs that nodes of the trace have.
func bindable(nodes []openb.Node, rng *rand.Rand) string {
	for {
		if n := &nodes[rng.IntN(len(nodes))]; n.GPU > 0 {
			return n.Model
		}
	}
}

// holds reports whether some node can hold a pod.
func holds(nodes []openb.Node, p *openb.Pod) bool {
	for i := range nodes {
		n := &nodes[i]
		if n.CPUMilli >= p.CPUMilli && n.MemoryMiB >= p.MemoryMiB && n.GPU >= p.NumGPU && (len(p.GPUSpec) == 0 || p.GPUSpec[0] == n.Model) {
			return true
		}
	}
	return false
}
