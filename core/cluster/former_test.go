package cluster_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestFormerRestoresTheFirst notes changes of objects, some of them twice, and restores them: the state
// has the very objects that it had.
func TestFormerRestoresTheFirst(t *testing.T) {
	s := newState()
	kept, gone := testkit.ResourceClaim("kept").Obj(), testkit.ResourceClaim("gone").Obj()
	s.SetObject(kept)
	s.SetObject(gone)
	before := dump(s)
	var former cluster.Former
	note := func(change func()) {
		from := s.Head()
		change()
		changes, _ := s.Since(from)
		for i := range changes {
			if o := changes[i].Object; o != nil {
				former.Note([]cluster.ObjectChange{*o})
			}
		}
	}
	if !former.Empty() {
		t.Error("nothing has changed, and it isn't empty")
	}
	note(func() { s.SetObject(testkit.ResourceClaim("kept").ReservedFor("a").Obj()) })
	note(func() { s.SetObject(testkit.ResourceClaim("kept").ReservedFor("b").Obj()) })
	note(func() { s.RemoveObject(cluster.ResourceClaimKind, "default", "gone") })
	note(func() { s.SetObject(testkit.ResourceClaim("gone").Obj()) })
	note(func() { s.SetObject(testkit.ResourceClaim("new").Obj()) })
	if former.Empty() || !former.Has(&cluster.ObjectChange{New: testkit.ResourceClaim("new").Obj()}) || former.Has(&cluster.ObjectChange{Old: testkit.ResourceClaim("other").Obj()}) {
		t.Error("it doesn't know what has changed")
	}
	former.Restore(s)
	if got := dump(s); got != before {
		t.Errorf("restored:\n%s\nbefore:\n%s", got, before)
	}
	if !former.Empty() {
		t.Error("it isn't empty after objects were restored")
	}
}
