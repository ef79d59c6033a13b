package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyNobodyTakesKeptDevices has stand-ins keep room on a node that takes them beside those before, with
// devices of two models. Whatever pods of the same priority are placed there since, and whichever end, all keep
// theirs: the node takes them together, and each beside the others. The claims of placed pods have each device once.
func TestPropertyNobodyTakesKeptDevices(t *testing.T) {
	several := 0
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.New(cluster.NewSchema())
		s.SetObject(testkit.DeviceClass("gpus", ""))
		s.SetNode(s.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "12", "pods", "99").Obj(), ""))
		slice := testkit.NodeSlice("gpu.example", "n")
		for k := range 2 + testkit.Uniform(t, 5, "devices") {
			slice.Devices(testkit.Device(fmt.Sprint("g", k)).Attr("model", string(rune('a'+testkit.Uniform(t, 2, "model")))))
		}
		s.SetObject(slice.Obj())
		sched := testkit.Must(scheduler.New(s, []*framework.Profile{plugins.Default(s.Schema, plugins.Options{})}, engine.Options{Seed: 1}))
		n := s.NodeByName("n")
		var placed []*cluster.Pod
		var history []string
		for i := range 12 {
			k := testkit.Uniform(t, 6, "step")
			if k == 0 && len(placed) > 0 {
				at := testkit.Uniform(t, len(placed), "ends")
				sched.Engine(placed[at]).TakeOff(placed[at])
				history = append(history, placed[at].Name()+" ends")
				placed = slices.Delete(placed, at, at+1)
			} else {
				p := claimantOf(t, s, fmt.Sprint("p", testkit.Uniform(t, 100, "name"), "-", i))
				e := sched.Engine(p)
				if !e.FitsOn(e.Class(p), n) {
					continue
				}
				if k < 4 {
					p.StandIn = cluster.HeadroomID(p.UID)
					s.Nominate(p, "n")
					history = append(history, p.Name()+" keeps room")
				} else {
					e.PlaceOn(p, n.Index)
					placed = append(placed, p)
					history = append(history, p.Name()+" is placed")
				}
			}
			if len(n.Nominated) > 1 {
				several++
			}
			if !lifecycle.FitTogether(s, sched, n) {
				t.Fatalf("the node doesn't take all of %d stand-ins any more\n%s", len(n.Nominated), strings.Join(history, "\n"))
			}
			for _, x := range slices.Clone(n.Nominated) {
				if !sched.FitsNominated(x, sched.Class(x)) {
					t.Fatalf("%s has lost its room\n%s", x.Name(), strings.Join(history, "\n"))
				}
			}
			checkOnce(t, s)
		}
	})
	if several == 0 {
		t.Error("no node has ever kept room for several pods")
	}
}

// claimantOf returns a pod that claims nothing, or a device of any model, or of one.
func claimantOf(t *rapid.T, s *cluster.State, name string) *cluster.Pod {
	b := testkit.Pod(name).Req("cpu", "1")
	if k := testkit.Uniform(t, 4, "claims"); k > 0 {
		r := testkit.Request("r", "gpus")
		if k > 1 {
			r.Where(fmt.Sprintf("device.attributes[%q].model == %q", "gpu.example", string(rune('a'+k-2))))
		}
		s.SetObject(testkit.ResourceClaim("of-"+name, r).MadeFor(name).Obj())
		b.TemplateClaim("own", "of-"+name)
	}
	return s.Schema.ParsePod(b.Obj())
}

// checkOnce checks that no two claims have one device, and that placed pods have theirs.
func checkOnce(t *rapid.T, s *cluster.State) {
	by := map[string]string{}
	s.Pods(func(p *cluster.Pod) {
		for _, c := range s.ClaimsOf(p) {
			if c.Status.Allocation == nil {
				t.Fatalf("pod %s was placed without a device", p.Name())
			}
			device := c.Status.Allocation.Devices.Results[0].Device
			if by[device] != "" {
				t.Fatalf("claims %s and %s have device %s", by[device], c.Name, device)
			}
			by[device] = c.Name
		}
	})
}
