package expander

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
)

// FuzzPriorities reads any text as the priorities of a ConfigMap, which may change in a live
// cluster at any time. What is accepted chooses among groups.
func FuzzPriorities(f *testing.F) {
	for _, text := range []string{"10:\n- .*spot.*\n-1: [a, b]\n", "1: ['(']", "{}", "1:\n", "a: b", "99999999999999999999: [x]"} {
		f.Add(text, "pool-spot")
	}
	f.Fuzz(func(t *testing.T, text, group string) {
		p, err := ParsePriorities(text)
		if err != nil {
			return
		}
		if at := p.levelOf(group); at < 0 || at > len(p.levels) {
			t.Errorf("group %q is at level %d of %d", group, at, len(p.levels))
		}
		s := &Priority{Current: func() *Priorities { return p }}
		options := []Option{{Group: &cluster.NodeGroup{ID: group}, Nodes: 1}, {Group: &cluster.NodeGroup{ID: "other"}, Nodes: 1}}
		if left := s.Best(&Round{}, options); len(left) > len(options) {
			t.Errorf("%d of %d options are left", len(left), len(options))
		}
	})
}
