package cluster_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkNewFact counts the pods that a label selects, ten of 50,000 on 5,000 nodes, for a rule
// that asks for the first time; another rule has asked about another value of the label. So does
// each Service with its first pod.
func BenchmarkNewFact(b *testing.B) {
	const nodes, apps, pods = 5000, 5000, 50_000
	s := newState()
	for i := range nodes {
		setNode(s, testkit.Node(fmt.Sprint("n", i)).Zone(fmt.Sprint("z", i%3)))
	}
	for i := range pods {
		place(s, testkit.Pod(fmt.Sprint("p", i)).Label("app", fmt.Sprint(i%apps)), fmt.Sprint("n", i%nodes))
	}
	spec := func(app int) cluster.FactSpec {
		selector := labels.SelectorFromSet(labels.Set{"app": fmt.Sprint(app)})
		return cluster.FactSpec{Key: fmt.Sprint(app), Topology: v1.LabelTopologyZone, Match: []cluster.PodMatch{{Selector: selector}}}
	}
	s.Fact(spec(apps - 1))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f := s.Fact(spec(i % (apps - 1)))
		if f.Nonzero() == 0 {
			b.Fatal("nothing is counted")
		}
		s.DropFact(f)
	}
}
