package core_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestMembersThatShareAVolume are refused one by one: whoever it is, the claim for which the volume is to be
// provisioned keeps its node as long as others have nodes; then it has none.
func TestMembersThatShareAVolume(t *testing.T) {
	for _, refused := range []string{"a", "b", "c"} {
		testSharedVolume(t, refused)
	}
}

func testSharedVolume(t *testing.T, refused string) {
	w := newGroupWorld(t, func(p *framework.Profile) { p.Reservers = append(p.Reservers, against(refused)) })
	w.step(step.ObjectSet{Object: testkit.Class("delayed", "csi.example").Mode("WaitForFirstConsumer").Obj()},
		step.ObjectSet{Object: testkit.Claim("shared", "delayed").Size("1Gi").Obj()},
		step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")})
	selected := func() bool {
		return w.State().Claim("default", "shared").Annotations[cluster.AnnSelectedNode] != ""
	}
	var in []step.Input
	for _, name := range []string{"a", "b", "c"} {
		in = append(in, step.PodSet{Pod: sharing(name)})
	}
	if binds := w.step(in...); binds != nil || w.placed() != 2 || !selected() {
		t.Errorf("without %s: %q are bound, %d have nodes, and the claim has one: %t; want none, 2, and true", refused, binds, w.placed(), selected())
	}
	for range 2 * 6 {
		w.now = w.now.Add(time.Minute)
		w.step()
		if selected() != (w.placed() > 0) {
			t.Errorf("without %s: %d have nodes, and the claim has one: %t", refused, w.placed(), selected())
		}
	}
}

// sharing returns a member of gang with the claim shared.
func sharing(name string) *v1.Pod {
	p := testkit.Pod(name).Req("cpu", "1").PodGroup("gang")
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}}}}
	return p.Obj()
}

// TestMembersWriteTheVolumeThatTheyShare: each member's bind writes the volume that the members' claim is to
// be bound to. Whichever binds fail, the volume stays reserved while one is under way, and then no longer.
func TestMembersWriteTheVolumeThatTheyShare(t *testing.T) {
	names := []string{"a", "b", "c"}
	for first := range names {
		w := newGroupWorld(t, func(*framework.Profile) {})
		w.step(step.ObjectSet{Object: testkit.Class("delayed", "kubernetes.io/no-provisioner").Mode("WaitForFirstConsumer").Obj()},
			step.ObjectSet{Object: testkit.Claim("shared", "delayed").Size("1Gi").Obj()},
			step.ObjectSet{Object: testkit.Volume("disk", "delayed").Size("1Gi").Obj()},
			step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")})
		reserved := func() bool { return w.State().Volume("disk").Spec.ClaimRef != nil }
		var in []step.Input
		for _, name := range names {
			in = append(in, step.PodSet{Pod: sharing(name)})
		}
		r := w.Step(w.now, door.Must(in...)...)
		if len(r.Binds) != len(names) {
			t.Fatalf("%d members are bound, want %d", len(r.Binds), len(names))
		}
		for i := range r.Binds {
			b := &r.Binds[i]
			if writes := b.Writes; len(writes) != 1 || writes[0].GetName() != "disk" || !slices.Equal(b.Claims, []string{"shared"}) {
				t.Errorf("the bind of %s writes %v and waits for %q, want the volume disk, and the claim shared", b.Name, writes, b.Claims)
			}
		}
		for i := range r.Binds {
			if !reserved() {
				t.Errorf("the volume isn't reserved any more after %d binds have failed, the first of them of %s", i, r.Binds[first].Name)
			}
			// Only those that still wait are asked for again: nothing is retried within the backoff.
			w.step(step.BindDone{UID: r.Binds[(first+i)%len(names)].UID, Err: errors.New("no answer")})
		}
		if reserved() {
			t.Error("the volume is reserved, and no bind is under way")
		}
	}
}
