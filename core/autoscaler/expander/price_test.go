package expander_test

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
)

// TestPricePrefersWhatItsFormulaSays compares options whose scores are worked out by hand
// from the formula at price.go's head, with X = 0.5 × 0.033174 + 500/1024 × 0.004446 =
// 0.018758 and a core with 4 GiB worth 0.050958.
func TestPricePrefersWhatItsFormulaSays(t *testing.T) {
	small := shaped("small", 0.10, "cpu", "2", "memory", "8Gi")
	large := shaped("large", 0.40, "cpu", "8", "memory", "32Gi")
	dear := shaped("dear", 0.11, "cpu", "2", "memory", "8Gi")
	free := shaped("unknown", 0, "cpu", "2", "memory", "8Gi")
	gpu := shaped("gpu", 0.05, "cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "1")
	twice := shaped("twice", 0.20, "cpu", "2", "memory", "8Gi")
	nothing := pods(1)
	one, eight := pods(1, "cpu", "1", "memory", "4Gi"), pods(8, "cpu", "1", "memory", "4Gi")
	for _, x := range []struct {
		name    string
		cluster int // nodes
		options []expander.Option
		want    string
	}{
		// Equal but for the price.
		{"the cheaper of two", 1, []expander.Option{{Group: dear, Nodes: 1, Pods: one}, {Group: small, Nodes: 1, Pods: one}}, "small"},
		// In all, not for each node: 2 × 0.10 is less than 3 × 0.09.
		{"the cheaper in all", 1, []expander.Option{{Group: small, Nodes: 2, Pods: one}, {Group: shaped("weak", 0.09, "cpu", "2", "memory", "8Gi"), Nodes: 3, Pods: one}}, "small"},
		// 1 node, prefers 1 core. large: 8 × (0.40+X)/(0.050958+X) = 48.1; small: 2 × (0.10+X)/(0.050958+X) = 3.4.
		{"a small node for one pod of a small cluster", 1, []expander.Option{{Group: large, Nodes: 1, Pods: one}, {Group: small, Nodes: 1, Pods: one}}, "small"},
		// 40 nodes, prefers 8 cores. large: 1 × 6.01 = 6.01; small: 4 × 1.70 = 6.81.
		{"a large node for one pod of a larger cluster", 40, []expander.Option{{Group: large, Nodes: 1, Pods: one}, {Group: small, Nodes: 1, Pods: one}}, "large"},
		// 20 nodes, prefers 4 cores. large: 2 × 6.01 = 12.0; small: 2 × 1.70 = 3.4.
		{"20 nodes are still few", 20, []expander.Option{{Group: large, Nodes: 1, Pods: one}, {Group: small, Nodes: 1, Pods: one}}, "small"},
		// 40 nodes, 41 new ones of small for 4.1 or 11 of large for 4.4: with that many the size hardly counts. fit of small
		// is 1 + 3 × (1 - tanh(40/15)) = 1.029; 1.029 × 4.1 < 1 × 4.4.
		{"many nodes at once may be of any size", 40, []expander.Option{{Group: large, Nodes: 11, Pods: eight}, {Group: small, Nodes: 41, Pods: eight}}, "small"},
		// 1 node. 8 pods on a large node: 8 × 0.418758/0.426422 = 7.9; 1 pod on it: 48.1.
		{"what takes more pods for the same", 1, []expander.Option{{Group: large, Nodes: 1, Pods: one}, {Group: shaped("large2", 0.40, "cpu", "8", "memory", "32Gi"), Nodes: 1, Pods: eight}}, "large2"},
		// Pods that request nothing, for 0.10: 0.118758/X = 6.33. Twice the money for half a core: 0.218758/(0.016587+X)
		// = 6.19; for 0.4 cores: 0.218758/(0.013270+X) = 6.83.
		{"half a core is worth twice the money", 1, []expander.Option{{Group: small, Nodes: 1, Pods: nothing}, {Group: twice, Nodes: 1, Pods: pods(1, "cpu", "500m")}}, "twice"},
		{"0.4 cores aren't", 1, []expander.Option{{Group: small, Nodes: 1, Pods: nothing}, {Group: twice, Nodes: 1, Pods: pods(1, "cpu", "400m")}}, "small"},
		{"no GPU where others will do, however cheap", 1, []expander.Option{{Group: gpu, Nodes: 1, Pods: one}, {Group: large, Nodes: 1, Pods: one}}, "large"},
		{"equal ones stay both", 1, []expander.Option{{Group: shaped("a", 0.1, "cpu", "2"), Nodes: 1, Pods: one}, {Group: shaped("b", 0.1, "cpu", "2"), Nodes: 1, Pods: one}}, "a b"},
		{"unknown prices are left out", 1, []expander.Option{{Group: free, Nodes: 1, Pods: one}, {Group: large, Nodes: 1, Pods: one}}, "large"},
		{"no price is known", 1, []expander.Option{{Group: free, Nodes: 1, Pods: one}, {Group: group("free"), Nodes: 1, Pods: one}}, "unknown free"},
		// 2 × 0.11 for its own nodes and 2 × 0.10 for those of the other: 0.42, less than 4 × 0.106.
		{"similar groups cost what they cost", 1, []expander.Option{
			{Group: dear, Nodes: 4, Pods: one, Similar: []expander.Share{{Group: small, Nodes: 2}}},
			{Group: shaped("flat", 0.106, "cpu", "2", "memory", "8Gi"), Nodes: 4, Pods: one},
		}, "dear"},
		// As much as the main group: 0.44.
		{"similar groups of unknown price", 1, []expander.Option{
			{Group: dear, Nodes: 4, Pods: one, Similar: []expander.Share{{Group: free, Nodes: 2}}},
			{Group: shaped("flat", 0.106, "cpu", "2", "memory", "8Gi"), Nodes: 4, Pods: one},
		}, "flat"},
	} {
		r := expander.Round{Nodes: x.cluster, Schema: schema}
		if got := ids((expander.Price{}).Best(&r, x.options)); got != x.want {
			t.Errorf("%s: left are %q, want %q", x.name, got, x.want)
		}
	}
}

// TestPriceOfAGroupWithoutATemplate compares groups that grow after a live node, as large at any size of
// the cluster: the cheaper one is chosen.
func TestPriceOfAGroupWithoutATemplate(t *testing.T) {
	live := shaped("live", 0, "cpu", "8", "memory", "32Gi").Template.Allocatable
	for _, nodes := range []int{1, 100, 600, 5000} {
		for _, known := range []*cluster.Resources{nil, &live} {
			options := []expander.Option{
				{Group: shaped("cheap", 0.1), Nodes: nodes, Pods: pods(1, "cpu", "1"), Allocatable: known},
				{Group: shaped("dear", 100), Nodes: nodes, Pods: pods(1, "cpu", "1"), Allocatable: known},
			}
			r := expander.Round{Nodes: nodes, Schema: schema}
			if got := ids((expander.Price{}).Best(&r, options)); got != "cheap" {
				t.Errorf("with %d nodes, known: %t: left are %q, want cheap", nodes, known != nil, got)
			}
		}
	}
	options := []expander.Option{
		{Group: shaped("suits", 0.4), Nodes: 1, Pods: pods(1, "cpu", "1"), Allocatable: &live},
		{Group: shaped("small", 0.4, "cpu", "1"), Nodes: 1, Pods: pods(1, "cpu", "1")},
	}
	if got := ids((expander.Price{}).Best(&expander.Round{Nodes: 40, Schema: schema}, options)); got != "suits" {
		t.Errorf("left are %q, want suits: its live nodes have the preferred 8 cores", got)
	}
}

// TestPriceCountsAPodsGPUs compares one pod that requests a GPU with fourteen cores' worth
// of pods, on nodes that cost the same: a GPU is worth 0.70, 14 cores with 56 GiB 0.7134.
func TestPriceCountsAPodsGPUs(t *testing.T) {
	node := []string{"cpu", "16", "memory", "64Gi", "nvidia.com/gpu", "1"}
	options := []expander.Option{
		{Group: shaped("cores", 1, node...), Nodes: 1, Pods: pods(13, "cpu", "1", "memory", "4Gi")},
		{Group: shaped("gpu", 1, node...), Nodes: 1, Pods: pods(1, "nvidia.com/gpu", "1")},
	}
	r := expander.Round{Nodes: 100, Schema: schema}
	if got := ids((expander.Price{}).Best(&r, options)); got != "gpu" {
		t.Errorf("with 13 cores' worth of pods left are %q, want gpu", got)
	}
	options[0].Pods = pods(14, "cpu", "1", "memory", "4Gi")
	if got := ids((expander.Price{}).Best(&r, options)); got != "cores" {
		t.Errorf("with 14 cores' worth of pods left are %q, want cores", got)
	}
}

// TestThePreferredSizeGrowsWithTheCluster finds for clusters of several sizes which of
// nodes of 1 to 32 cores, all of one price a node, is preferred for one pod.
func TestThePreferredSizeGrowsWithTheCluster(t *testing.T) {
	var options []expander.Option
	for _, cores := range []string{"1", "2", "4", "8", "16", "32"} {
		options = append(options, expander.Option{Group: shaped(cores, 1, "cpu", cores, "memory", "8Gi"), Nodes: 1, Pods: pods(1, "cpu", "1")})
	}
	for nodes, want := range map[int]string{0: "1", 2: "1", 3: "2", 6: "2", 7: "4", 20: "4", 21: "8", 60: "8", 61: "16", 200: "16", 201: "32", 5000: "32"} {
		r := expander.Round{Nodes: nodes, Schema: schema}
		if got := ids((expander.Price{}).Best(&r, options)); got != want {
			t.Errorf("with %d nodes those of %q cores are preferred, want %s", nodes, got, want)
		}
	}
}
