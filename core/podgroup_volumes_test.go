package core_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
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
		p := testkit.Pod(name).Req("cpu", "1").PodGroup("gang")
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}}}}
		in = append(in, step.PodSet{Pod: p.Obj()})
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
