// Package imagelocality prefers nodes that have the images of a pod already,
// the more the larger those are and the more nodes have them.
package imagelocality

import (
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "ImageLocality"

// Sums below minThreshold score nothing, and maxThreshold a container scores
// everything (bytes).
const (
	minThreshold = 23 << 20
	maxThreshold = 1000 << 20
)

// Plugin implements framework.Plugin.
type Plugin struct{}

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// wanted returns the images of the pod that some node has, with repeats.
func wanted(pod *cluster.Pod, state *cluster.State) []cluster.ImageID {
	var out []cluster.ImageID
	add := func(name string) {
		if id, ok := state.Image(normalized(name)); ok {
			out = append(out, id)
		}
	}
	spec := &pod.Object.Spec
	for i := range spec.InitContainers {
		add(spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Image)
	}
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil {
			add(image.Reference)
		}
	}
	return out
}

// normalized adds the tag that is meant where there is none.
func normalized(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}

func containers(pod *cluster.Pod) int64 {
	return int64(len(pod.Object.Spec.InitContainers) + len(pod.Object.Spec.Containers))
}

// Sign implements framework.Plugin. Images that no node has tell nothing
// apart.
func (Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, _ *framework.Signature) {
	images := wanted(pod, state)
	local.Int(int64(len(images)))
	if len(images) == 0 {
		return
	}
	local.Int(containers(pod))
	for _, id := range images {
		local.Int(int64(id))
	}
}

// For implements framework.Plugin.
func (Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	images := wanted(pod, state)
	if len(images) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Group: &rule{
		state: state, images: images, containers: containers(pod),
	}}, nil
}

// rule groups nodes by the sizes that they have the images in.
type rule struct {
	framework.StaticScore
	state      *cluster.State
	images     []cluster.ImageID
	containers int64
	row        []int64
}

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.RawScorer = (*rule)(nil)
)

// StaticKey is the row of the sizes, -1 where there is no image; 0 is none at
// all.
func (r *rule) StaticKey(n *cluster.NodeInfo) int32 {
	r.row = r.row[:0]
	some := false
	for _, want := range r.images {
		size := int64(-1)
		for i := range n.Images {
			if n.Images[i].ID == want {
				size = n.Images[i].Size
				some = true
			}
		}
		r.row = append(r.row, size)
	}
	if !some {
		return 0
	}
	return r.state.Row(r.row)
}

// raw follows kube-scheduler 1.36: an image counts by its size and the part of
// the nodes that have it, which keeps pods from all going to the one that does.
func (r *rule) raw(key int32) int64 {
	sum := int64(0)
	if key > 0 {
		for i, size := range r.state.RowOf(key) {
			if size < 0 {
				continue
			}
			spread := float64(r.state.NodesWithImage(r.images[i])) / float64(r.state.Live())
			sum += int64(float64(size) * spread)
		}
	}
	highest := maxThreshold * r.containers
	sum = max(minThreshold, min(highest, sum))
	return framework.MaxScore * (sum - minThreshold) / (highest - minThreshold)
}

// Score implements framework.GroupRule. The score isn't normalised.
func (r *rule) Score(g *framework.Groups, weight int64, out []int64) {
	for i := range out {
		if g.Static[i] != 0 && g.Nodes[i] != 0 {
			out[i] += weight * r.raw(g.Static[i])
		}
	}
}

// Raw implements framework.RawScorer.
func (r *rule) Raw(g *framework.Groups, out []int64) {
	for i := range out {
		out[i] = r.raw(g.Static[i])
	}
}

// Explain is never asked: nothing is rejected.
func (*rule) Explain(*framework.Groups, int) *framework.Reason { return nil }
