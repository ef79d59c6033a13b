package testkit

import (
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file has a burst of pods of many classes and groups of many shapes, for benchmarks of
// plans that buy nodes.

// BurstGroups returns 100 groups of 34 shapes. 18 shapes without GPUs and 8 with are to be
// had in each of three zones; 18 more, of another architecture and with a taint, in one
// zone each; and 4 that nothing but their size tells from these. A node costs 0.03 per
// core, 0.004 per GiB and 0.9 per GPU, of the other architecture a fifth less.
func BurstGroups(schema *cluster.Schema) (groups []*cluster.NodeGroup) {
	add := func(cores, gib, gpus int, zone, arch string) {
		id := fmt.Sprintf("%s-%d-%d-%d-%s", arch, cores, gib, gpus, zone)
		t := Node(id).Alloc("cpu", fmt.Sprintf("%dm", cores*1000-100), "memory", fmt.Sprintf("%dMi", gib*1024-700),
			"pods", "110", "nvidia.com/gpu", fmt.Sprint(gpus)).Zone(zone).Label(v1.LabelArchStable, arch)
		price := 0.03*float64(cores) + 0.004*float64(gib) + 0.9*float64(gpus)
		if arch == "arm64" {
			price *= 0.8
			t.Taint(v1.LabelArchStable, arch, v1.TaintEffectNoSchedule)
		}
		groups = append(groups, &cluster.NodeGroup{ID: id, Max: 1000000, Price: price, Template: schema.ParseNode(t.Obj(), id)})
	}
	zones := []string{"z0", "z1", "z2"}
	for i, cores := range []int{4, 8, 16, 32, 48, 64} {
		for j, perCore := range []int{2, 4, 8} {
			for _, zone := range zones {
				add(cores, cores*perCore, 0, zone, "amd64")
			}
			add(cores, cores*perCore, 0, zones[(i+j)%3], "arm64")
		}
	}
	for _, gpus := range []int{1, 2, 4, 8} {
		for _, perGPU := range []int{8, 12} {
			for _, zone := range zones {
				add(gpus*perGPU, gpus*perGPU*6, gpus, zone, "amd64")
			}
		}
	}
	for _, cores := range []int{12, 20, 24, 40} {
		add(cores, 4*cores, 0, "z1", "arm64")
	}
	return groups
}

// BurstPods returns so many pods of each of so many classes, drawn with a fixed seed. A pod
// requests 100m to 14 cores, small ones as often as large ones, and 1 to 8 GiB for each.
// One class in ten requests 1, 2 or 4 GPUs; 15 % select a zone, and 10 % require one of
// two; 15 % tolerate the other architecture's taint, and 5 % require that of the nodes
// without the taint; 2 % keep their pods on nodes apart, and 1 % spread them hard over the
// zones. These may overlap. Each class has a label and an owner of its own. No two
// neighbours are of one class.
func BurstPods(schema *cluster.Schema, classes, pods int) (pending []*cluster.Pod) {
	r := rand.New(rand.NewPCG(1, 2))
	percent := func(p int) bool { return r.IntN(100) < p }
	zone := func() string { return fmt.Sprint("z", r.IntN(3)) }
	shapes := make([]*PodBuilder, classes)
	for k := range shapes {
		milli := (100 << r.IntN(8)) * (100 + r.IntN(10)) / 100
		memory := float64(milli) * (1 + 7*r.Float64()) * 1.024
		requests := []string{"cpu", fmt.Sprintf("%dm", milli), "memory", fmt.Sprintf("%dMi", int(memory))}
		if percent(10) {
			requests = append(requests, "nvidia.com/gpu", fmt.Sprint(1<<r.IntN(3)))
		}
		p := Pod("").Label("app", app(k)).Owner("apps/v1", "ReplicaSet", app(k)).Req(requests...)
		if percent(15) {
			p.Select(v1.LabelTopologyZone, zone())
		} else if percent(12) {
			p.RequireIn(v1.LabelTopologyZone, "z0", zone())
		}
		if percent(15) {
			p.Tolerate(v1.LabelArchStable)
		} else if percent(6) {
			p.RequireIn(v1.LabelArchStable, "amd64")
		}
		if percent(2) {
			p.Apart(v1.LabelHostname, "app", p.Labels["app"])
		} else if percent(1) {
			p.SpreadHard(v1.LabelTopologyZone, 1, "app", p.Labels["app"])
		}
		shapes[k] = p
	}
	for i := range pods {
		for k, shape := range shapes {
			obj := shape.DeepCopy()
			p := Pod(fmt.Sprintf("p%d-%d", k, i))
			p.Labels, p.OwnerReferences, p.Spec = obj.Labels, obj.OwnerReferences, obj.Spec
			pending = append(pending, schema.ParsePod(cluster.Trim(p.Obj())))
		}
	}
	return pending
}
