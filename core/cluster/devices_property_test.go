package cluster_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyDevicesAreThoseOfTheObjects takes a state through histories of slices, claims, classes, taint
// rules and nodes, with what-ifs, and compares the inventory after every step with one that is made of the
// objects as they are: each node's devices are the same, and two nodes have one content exactly when the
// library couldn't tell them apart. A node whose content is another one was touched.
func TestPropertyDevicesAreThoseOfTheObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		w := testkit.NewDeviceWorld(t, s, 5)
		var marks []cluster.Mark
		history := []string{"begin"}
		sameDevices(t, s, history)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before, from := contentsOf(s), s.Head()
			rolledBack := false
			switch k := testkit.Uniform(t, 12, "step"); {
			case k <= 1:
				marks = append(marks, s.Mark())
				history = append(history, "mark")
			case k <= 3 && len(marks) > 0:
				s.Rollback(marks[len(marks)-1])
				marks = marks[:len(marks)-1]
				history, rolledBack = append(history, "rollback"), true
			default:
				history = append(history, w.Change(t))
			}
			sameDevices(t, s, history)
			if !rolledBack {
				touchedWhereOther(t, s, before, from, history)
			}
		}
	})
}

// contentsOf returns what stands for the devices of each node.
func contentsOf(s *cluster.State) map[cluster.NodeIndex]devices.Content {
	out := map[cluster.NodeIndex]devices.Content{}
	s.Nodes(func(n *cluster.Node) { out[n.Index] = s.Devices().Content(int32(n.Index)) })
	return out
}

// sameDevices compares the inventory with one that is made anew.
func sameDevices(t *rapid.T, s *cluster.State, history []string) {
	fresh := cluster.New(s.Schema)
	s.Nodes(func(n *cluster.Node) { fresh.SetNode(n.NodeInfo) })
	for _, o := range s.Objects() {
		fresh.SetObject(o)
	}
	byContent := map[devices.Content]devices.Digest{}
	byDigest := map[devices.Digest]devices.Content{}
	s.Nodes(func(n *cluster.Node) {
		got, content := s.Devices().Digest(int32(n.Index)), s.Devices().Content(int32(n.Index))
		if want := fresh.Devices().Digest(int32(fresh.NodeByName(n.Name).Index)); got != want {
			t.Fatalf("the devices of %s aren't those that the objects say\nhistory:\n%s", n.Name, strings.Join(history, "\n"))
		}
		if d, known := byContent[content]; known && d != got {
			t.Fatalf("%s has the content of a node with other devices\nhistory:\n%s", n.Name, strings.Join(history, "\n"))
		}
		if c, known := byDigest[got]; known && c != content {
			t.Fatalf("%s has another content than a node with the same devices\nhistory:\n%s", n.Name, strings.Join(history, "\n"))
		}
		byContent[content], byDigest[got] = got, content
	})
}

// touchedWhereOther checks that each node with another content than before was touched since.
func touchedWhereOther(t *rapid.T, s *cluster.State, before map[cluster.NodeIndex]devices.Content, from cluster.Seq, history []string) {
	touched := map[cluster.NodeIndex]bool{}
	changes, _ := s.Since(from)
	for i := range changes {
		switch changes[i].Op {
		case cluster.NodeTouched, cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved:
			touched[changes[i].Node] = true
		}
	}
	for n, content := range contentsOf(s) {
		if was, known := before[n]; known && was != content && !touched[n] {
			t.Fatalf("node %d has other devices than before and wasn't touched\nhistory:\n%s", n, strings.Join(history, "\n"))
		}
	}
}
