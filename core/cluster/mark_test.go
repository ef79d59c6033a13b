package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

func newState() *cluster.State { return cluster.New(cluster.NewSchema()) }

// setNode adds a node, or replaces what is known of it.
func setNode(s *cluster.State, b *testkit.NodeBuilder) cluster.NodeIndex {
	return s.SetNode(s.Schema.ParseNode(b.Obj(), ""))
}

// place puts a pod on a node.
func place(s *cluster.State, b *testkit.PodBuilder, node string) {
	s.Place(s.Schema.ParsePod(b.Obj()), node)
}

func dump(s *cluster.State) string {
	var b strings.Builder
	s.Dump(&b)
	return b.String()
}

// panics returns what f panics with, "" when it doesn't.
func panics(f func()) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestWhatIfs(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("n"))
	empty := dump(s)

	outer := s.Mark()
	place(s, testkit.Pod("kept"), "n")
	inner := s.Mark()
	place(s, testkit.Pod("tried"), "n")
	s.Rollback(inner)
	if n := s.NodeByName("n"); len(n.Pods) != 1 || n.Pods[0].Name() != "default/kept" {
		t.Errorf("after the inner rollback the node has %d pods, want only default/kept", len(n.Pods))
	}
	second := s.Mark()
	place(s, testkit.Pod("kept too"), "n")
	s.Release(second)
	if n := s.NodeByName("n"); len(n.Pods) != 2 {
		t.Errorf("after a release the node has %d pods, want 2", len(n.Pods))
	}
	if !s.MarkOpen() {
		t.Error("the outer mark is closed, though only the inner ones were ended")
	}
	s.Rollback(outer)
	if s.MarkOpen() {
		t.Error("a mark is open after all were ended")
	}
	if got := dump(s); got != empty {
		t.Errorf("after the outer rollback, which takes back what was released inside it:\n%s\nwant:\n%s", got, empty)
	}
}

func TestMisuseOfMarksPanics(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *cluster.State)
		want string
	}{
		{"rolled back twice", func(s *cluster.State) {
			m := s.Mark()
			s.Rollback(m)
			s.Rollback(m)
		}, "rollback of mark 1, which was rolled back or released before"},
		{"rolled back after release", func(s *cluster.State) {
			m := s.Mark()
			s.Release(m)
			s.Rollback(m)
		}, "rollback of mark 1, which was rolled back or released before"},
		{"released after rollback", func(s *cluster.State) {
			m := s.Mark()
			s.Rollback(m)
			s.Release(m)
		}, "release of mark 1, which was rolled back or released before"},
		{"ended before, and another was set since at its depth", func(s *cluster.State) {
			m := s.Mark()
			s.Rollback(m)
			s.Mark()
			s.Rollback(m)
		}, "rollback of mark 1, which was rolled back or released before"},
		{"rolled back while one inside it is open", func(s *cluster.State) {
			m := s.Mark()
			s.Mark()
			s.Rollback(m)
		}, "rollback of mark 1 while mark 2, set inside it, is open"},
		{"released while one inside it is open", func(s *cluster.State) {
			m := s.Mark()
			s.Mark()
			s.Release(m)
		}, "release of mark 1 while mark 2, set inside it, is open"},
		{"of another state", func(s *cluster.State) {
			s.Mark()
			s.Rollback(newState().Mark())
		}, "rollback of a mark that another state has set"},
		{"of no state", func(s *cluster.State) {
			s.Rollback(cluster.Mark{})
		}, "rollback of a mark that another state has set"},
		{"a follower reads past it", func(s *cluster.State) {
			f := cluster.Follow(s)
			s.Mark()
			_ = f.CatchUp()
		}, "a follower reads past an open mark of its primary"},
		{"a follower catches up inside its own", func(s *cluster.State) {
			f := cluster.Follow(s)
			f.Mark()
			_ = f.CatchUp()
		}, "a follower catches up inside a what-if of its own"},
		{"a follower that missed what was trimmed", func(s *cluster.State) {
			s.Trim(s.Head())
			cluster.Follow(s)
		}, "a follower of a primary whose journal was trimmed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState()
			setNode(s, testkit.Node("n"))
			if got := panics(func() { c.do(s) }); got != "cluster: "+c.want {
				t.Errorf("it panics with %q, want %q", got, "cluster: "+c.want)
			}
		})
	}
}

// undone is a cache that notes what it is told of rollbacks.
type undone []string

func (u *undone) RolledBack(to cluster.Seq, changes []cluster.Change) {
	*u = append(*u, fmt.Sprintf("%d changes back to %d", len(changes), to))
}

func TestCachesAreToldOfRollbacks(t *testing.T) {
	s := newState()
	var told undone
	s.AddCache(&told)
	setNode(s, testkit.Node("n"))
	epoch := s.Epoch()

	s.Rollback(s.Mark())
	if len(told) != 0 || s.Epoch() != epoch {
		t.Errorf("after a rollback of nothing: told %v, epoch %d, want nothing and %d", told, s.Epoch(), epoch)
	}
	m := s.Mark()
	place(s, testkit.Pod("a"), "n")
	place(s, testkit.Pod("b"), "n")
	s.Rollback(m)
	if want := "2 changes back to 1"; len(told) != 1 || told[0] != want {
		t.Errorf("told %v, want %q", told, want)
	}
	if s.Epoch() != epoch+1 || s.Head() != 1 {
		t.Errorf("epoch %d and head %d, want %d and 1: positions are used again in a new epoch", s.Epoch(), s.Head(), epoch+1)
	}
}

func TestTrim(t *testing.T) {
	s := newState()
	for _, name := range testkit.Names("n", 8) {
		setNode(s, testkit.Node(name))
	}
	from := func(seq cluster.Seq) string {
		changes, ok := s.Since(seq)
		if !ok {
			return "out of reach"
		}
		return fmt.Sprint(len(changes), " changes")
	}
	check := func(when string, want map[cluster.Seq]string) {
		t.Helper()
		for seq, w := range want {
			if got := from(seq); got != w {
				t.Errorf("%s: from %d on there are %s, want %s", when, seq, got, w)
			}
		}
	}
	check("at first", map[cluster.Seq]string{0: "8 changes", 8: "0 changes", 9: "out of reach"})
	s.Trim(3)
	check("less than half is kept", map[cluster.Seq]string{0: "8 changes"})
	m := s.Mark()
	s.Trim(8)
	check("while a mark is open all is kept", map[cluster.Seq]string{0: "8 changes"})
	s.Release(m)
	s.Trim(4)
	check("half is forgotten", map[cluster.Seq]string{3: "out of reach", 4: "4 changes", 8: "0 changes"})
	s.Trim(100)
	check("never more than there is", map[cluster.Seq]string{7: "out of reach", 8: "0 changes", 9: "out of reach"})
	if s.Head() != 8 {
		t.Errorf("the head is at %d, want 8 as before", s.Head())
	}
	m = s.Mark()
	setNode(s, testkit.Node("tried"))
	s.Rollback(m)
	check("a what-if after trimming", map[cluster.Seq]string{8: "0 changes", 9: "out of reach"})
}

// TestALongJournalKeepsItsChanges has a journal grow some times, by more than it copies at once.
func TestALongJournalKeepsItsChanges(t *testing.T) {
	s := newState()
	names := testkit.Names("n", 3000)
	for _, name := range names {
		setNode(s, testkit.Node(name))
	}
	changes, ok := s.Since(0)
	if !ok || len(changes) != len(names) {
		t.Fatalf("the journal has %d changes, want %d", len(changes), len(names))
	}
	for i, c := range changes {
		if c.Op != cluster.NodeAdded || c.Info.Name != names[i] {
			t.Fatalf("change %d is %s of %s, want NodeAdded of %s", i, c.Op, c.Info.Name, names[i])
		}
	}
}

// TestOthersHaveATurnBetweenChanges counts what is called between changes, also while they are
// taken back.
func TestOthersHaveATurnBetweenChanges(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("other")) // there is room for more
	turns := 0
	s.Between(func() { turns++ })
	m := s.Mark()
	setNode(s, testkit.Node("n"))
	place(s, testkit.Pod("p"), "n")
	if turns != 2 {
		t.Errorf("after 2 changes others had %d turns", turns)
	}
	s.Rollback(m)
	if turns != 4 {
		t.Errorf("after 2 changes that were taken back others had %d turns, want 4", turns)
	}
	s.Between(nil)
	setNode(s, testkit.Node("n"))
	if turns != 4 {
		t.Errorf("others had %d turns though nobody asks for any, want 4 as before", turns)
	}
}

func TestPropertyRollbackRestoresTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := testkit.NewWorld(newState(), 5)
		w.Furnish(t)
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			w.Change(t)
		}
		type open struct {
			mark   cluster.Mark
			before string
		}
		var marks []open
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch k := testkit.Uniform(t, 10, "step"); {
			case k < 2:
				marks = append(marks, open{w.State.Mark(), dump(w.State)})
			case k == 2 && len(marks) > 0: // what follows belongs to the mark outside
				w.State.Release(marks[len(marks)-1].mark)
				marks = marks[:len(marks)-1]
			case k == 3 && len(marks) > 0:
				last := marks[len(marks)-1]
				marks = marks[:len(marks)-1]
				w.State.Rollback(last.mark)
				if got := dump(w.State); got != last.before {
					t.Fatalf("after the rollback:\n%s\nwant:\n%s", got, last.before)
				}
			default:
				w.Change(t)
			}
		}
	})
}

func TestPropertyFollowerEqualsPrimary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := testkit.NewWorld(newState(), 5)
		f := cluster.Follow(w.State)
		w.Furnish(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.Change(t)
			if testkit.Uniform(t, 4, "what-if") == 0 {
				m := w.State.Mark()
				w.Change(t)
				if testkit.Uniform(t, 3, "kept") == 0 {
					w.State.Release(m)
				} else {
					w.State.Rollback(m)
				}
			}
			if testkit.Uniform(t, 4, "catch up") > 0 {
				continue
			}
			if err := f.CatchUp(); err != nil {
				t.Fatal(err)
			}
			epoch, at := f.Position()
			if epoch != w.State.Epoch() || at != w.State.Head() {
				t.Fatalf("the follower is at %d in epoch %d, the primary at %d in %d", at, epoch, w.State.Head(), w.State.Epoch())
			}
			w.State.Trim(w.State.Head())
			if got, want := dump(f.State), dump(w.State); got != want {
				t.Fatalf("the follower:\n%s\nwant what the primary is:\n%s", got, want)
			}
		}
	})
}

func TestAFollowerThatIsTooFarBehindSaysSo(t *testing.T) {
	s := newState()
	f := cluster.Follow(s)
	setNode(s, testkit.Node("n"))
	s.Trim(s.Head())
	if err := f.CatchUp(); !errors.Is(err, cluster.ErrBehind) {
		t.Errorf("CatchUp returns %v, want %v", err, cluster.ErrBehind)
	}
}
