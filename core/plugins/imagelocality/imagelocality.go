// Package imagelocality prefers nodes that have images of a pod already, the more the
// larger those are and the more nodes have them. It rejects nothing. What a pod's
// images are worth on a node follows from the sizes in which the node has them: nodes
// of equal sizes are one group.
package imagelocality

import (
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "ImageLocality"

// The bytes of images that score 0, and, for each image that counts (sources), 100.
const (
	minThreshold = 23 << 20
	maxThreshold = 1000 << 20
)

// Plugin implements framework.Plugin.
type Plugin struct {
	countsVolumes bool // see sources
}

// New returns the plugin of a version.
func New(v compat.Version) Plugin { return Plugin{countsVolumes: v >= compat.V37} }

var _ framework.Plugin = Plugin{}

// Name implements framework.Plugin.
func (Plugin) Name() string { return Name }

// knownImages returns the images of the pod's containers and image volumes that some
// node has, as often as the pod names them. Which images are known is read from the
// state without a Reclassifier: a pod whose image comes to a node later keeps its
// class, in which the image scores nothing, until it is signed again.
func knownImages(pod *cluster.Pod, state *cluster.State) []string {
	var out []string
	add := func(name string) {
		if name = normalized(name); state.NodesWithImage(name) > 0 {
			out = append(out, name)
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

// normalized adds the tag that is meant where the name has none.
func normalized(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}

// sources returns how many images of the pod count: the more, the larger they must be for the same
// score. These are the images of its containers; kube-scheduler 1.37 counts image volumes, too.
func (p Plugin) sources(pod *cluster.Pod) int64 {
	spec := &pod.Object.Spec
	n := len(spec.InitContainers) + len(spec.Containers)
	for i := range spec.Volumes {
		if p.countsVolumes && spec.Volumes[i].Image != nil {
			n++
		}
	}
	return int64(n)
}

// Sign implements framework.Plugin. Images that no node has tell nothing
// apart.
func (p Plugin) Sign(pod *cluster.Pod, state *cluster.State, local, _ *framework.Signature) {
	images := knownImages(pod, state)
	local.Int(int64(len(images)))
	if len(images) == 0 {
		return
	}
	local.Int(p.sources(pod))
	for _, name := range images {
		local.Str(name)
	}
}

// For implements framework.Plugin.
func (p Plugin) For(pod *cluster.Pod, state *cluster.State) (framework.Rules, *framework.Reason) {
	images := knownImages(pod, state)
	if len(images) == 0 {
		return framework.Rules{}, nil
	}
	return framework.Rules{Group: &rule{
		state: state, images: images, sources: p.sources(pod), rows: state.Rows(strings.Join(images, "\n")),
	}}, nil
}

// rule implements framework.GroupRule for the pods of one class.
type rule struct {
	framework.StaticScore
	state   *cluster.State
	images  []string      // see knownImages
	sources int64         // see Plugin.sources
	rows    *cluster.Rows // of sizes; numbered alike for all classes of these images
	row     []int64       // of the call of StaticKey that is going on
}

var (
	_ framework.GroupRule = (*rule)(nil)
	_ framework.Releaser  = (*rule)(nil)
	_ framework.RawScorer = (*rule)(nil)
)

// Release implements framework.Releaser.
func (r *rule) Release(state *cluster.State) { state.DropRows(r.rows) }

// StaticKey implements framework.GroupRule: the number of the row of the sizes that
// the node has the images in, in bytes, with -1 for those that it doesn't have; 0 when
// it has none of them.
func (r *rule) StaticKey(n *cluster.NodeBasics) int32 {
	r.row = r.row[:0]
	some := false
	for _, want := range r.images {
		size, ok := n.ImageSize(want)
		if !ok {
			size = -1
		}
		some = some || ok
		r.row = append(r.row, size)
	}
	if !some {
		return 0
	}
	return r.rows.Number(r.row)
}

// raw is the score for a StaticKey (kube-scheduler's sumImageScores and
// calculatePriority). An image counts by its size times the part of the nodes that
// have it, which keeps pods from all going to the only node that does.
func (r *rule) raw(key int32) int64 {
	sum := int64(0)
	if key > 0 {
		for i, size := range r.rows.At(key) {
			if size < 0 {
				continue
			}
			spread := float64(r.state.NodesWithImage(r.images[i])) / float64(r.state.Live())
			sum += int64(float64(size) * spread)
		}
	}
	highest := maxThreshold * r.sources
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

// Explain is never asked: the plugin rejects nothing.
func (*rule) Explain(*framework.Groups, int) *framework.Reason { return nil }
