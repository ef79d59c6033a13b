package core_test

import (
	"errors"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// TestClaimsEditedWhileTheirPodIsBound: a pod was given the device of one node and its bind is under way, when somebody
// writes what nobody should to its claim, or deletes it. Until the outcome is known nobody else gets the device that the
// bind may write, nor one that the API has as taken. After a bind that failed the pod goes by what the API has; after
// one that succeeded it keeps its devices.
func TestClaimsEditedWhileTheirPodIsBound(t *testing.T) {
	other := func(node string) string { return map[string]string{"n0": "n1", "n1": "n0"}[node] }
	edited := func(c *resourcev1.ResourceClaim) []step.Input { return []step.Input{step.ObjectSet{Object: c}} }
	for _, c := range []struct {
		name   string
		edit   func(node string) []step.Input // the pod is being bound to the node
		others int                            // how many of two other pods get a device meanwhile
		gone   bool                           // the bind cannot write the claim any more, so its device is free
		again  func(node string) string       // where the pod goes after its bind has failed, "" for nowhere
	}{
		{"another node's device", func(node string) []step.Input { return edited(gpuClaim("edited", other(node))) }, 0, false, other},
		{"another node's device, for somebody else", func(node string) []step.Input { return edited(gpuClaim("edited", other(node), "pod-x")) }, 0, false, other},
		{"a device that isn't published", func(node string) []step.Input {
			c := gpuClaim("edited", node)
			c.Status.Allocation.Devices.Results[0].Device = "none"
			return edited(c)
		}, 1, false, func(node string) string { return node }},
		{"a node that there is not", func(node string) []step.Input {
			c := gpuClaim("edited", node)
			c.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "none"
			return edited(c)
		}, 1, false, func(string) string { return "" }},
		{"the same device, for somebody else", func(node string) []step.Input { return edited(gpuClaim("edited", node, "pod-x")) }, 1, false, func(node string) string { return node }},
		{"a reservation without devices", func(string) []step.Input { return edited(gpuClaim("edited", "", "pod-x")) }, 1, false, nil},
		{"no device at all", func(node string) []step.Input {
			c := gpuClaim("edited", node)
			c.Status.Allocation.Devices.Results = nil
			return edited(c)
		}, 1, false, func(node string) string { return node }},
		{"it is deleted", func(string) []step.Input {
			return []step.Input{step.ObjectGone{Kind: cluster.ResourceClaimKind, Namespace: "default", Name: "edited"}}
		}, 2, true, func(string) string { return "" }},
		{"another one of its name, with the other node's device", func(node string) []step.Input {
			c := gpuClaim("edited", other(node))
			c.UID = "another"
			return edited(c)
		}, 1, true, other},
	} {
		for _, failed := range []bool{true, false} {
			name := c.name + ", and the bind succeeds"
			if failed {
				name = c.name + ", and the bind fails"
			}
			t.Run(name, func(t *testing.T) {
				advance, core := deviceWorld(t)
				r := advance(step.ObjectSet{Object: gpuClaim("edited", "")}, gpuUser("user", "edited"))
				if len(r.Binds) != 1 {
					t.Fatalf("binds %+v, want the pod's", r.Binds)
				}
				node := r.Binds[0].Node
				r = advance(c.edit(node)...)
				if len(r.Binds)+len(r.Deallocations) > 0 {
					t.Errorf("%d binds and deallocations %+v while the bind is under way", len(r.Binds), r.Deallocations)
				}
				r = advance(step.ObjectSet{Object: gpuClaim("a", "")}, gpuUser("a", "a"), step.ObjectSet{Object: gpuClaim("b", "")}, gpuUser("b", "b"))
				if len(r.Binds) != c.others {
					t.Errorf("%d binds of others while the bind is under way, want %d", len(r.Binds), c.others)
				}
				for _, b := range r.Binds {
					if b.Node == node && !c.gone {
						t.Errorf("%s gets the device of %s, which a bind may be writing", b.Name, node)
					}
					bound := gpuUser(b.Name, b.Name)
					bound.Pod.Spec.NodeName = b.Node
					advance(step.ObjectSet{Object: gpuClaim(b.Name, b.Node, b.UID)}, bound, step.BindDone{UID: b.UID})
				}
				if !failed {
					bound := gpuUser("user", "edited")
					bound.Pod.Spec.NodeName = node
					advance(step.BindDone{UID: "pod-user"}, bound)
					r := advance(step.PodGone{UID: "pod-user"})
					if left := core.Unsettled(); left != nil && len(r.Binds) == 0 {
						t.Errorf("left when the pod is gone: %q", left)
					}
					return
				}
				r = advance(step.BindDone{UID: "pod-user", Err: errors.New("claim default/edited got allocated elsewhere in the meantime")})
				if c.again == nil {
					return
				}
				at := ""
				for _, x := range [][]step.Bind{r.Binds, advance().Binds} {
					for _, b := range x {
						if b.Name == "user" {
							at = b.Node
						}
					}
				}
				if want := c.again(node); at != want {
					t.Errorf("after its bind has failed the pod goes to %q, want %q; conditions %+v", at, want, r.Conditions)
				}
			})
		}
	}
}

// TestAPodThatSharesAnEditedClaim: a pod comes for a claim to which somebody has given another node's device while the
// bind of the first pod is under way. Its bind wants what the API has: the devices that the first bind may still write are
// in use, but nobody is to write both.
func TestAPodThatSharesAnEditedClaim(t *testing.T) {
	advance, _ := deviceWorld(t)
	r := advance(step.ObjectSet{Object: gpuClaim("edited", "")}, gpuUser("user", "edited"))
	if len(r.Binds) != 1 {
		t.Fatalf("binds %+v, want the pod's", r.Binds)
	}
	other := map[string]string{"n0": "n1", "n1": "n0"}[r.Binds[0].Node]
	edited := gpuClaim("edited", other)
	advance(step.ObjectSet{Object: edited})
	r = advance(gpuUser("second", "edited"))
	if len(r.Binds) != 1 || r.Binds[0].Node != other || len(r.Binds[0].DeviceClaims) != 1 {
		t.Fatalf("binds %+v, want the second pod on %s, where the API has the device", r.Binds, other)
	}
	got, want := r.Binds[0].DeviceClaims[0].Status.Allocation.Devices.Results, edited.Status.Allocation.Devices.Results
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("its bind writes %+v, want what the API has: %+v", got, want)
	}
}
