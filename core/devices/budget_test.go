package devices_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// costly is a selector of which an evaluation costs some 120, and which no device matches.
var costly = func() resourcev1.DeviceSelector {
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 4), ",") + "]"
	return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("!%[1]s.all(a, %[1]s.all(b, a + b == 2))", list)}}
}()

// fabric returns the inventory of a node that sees a pool of many devices.
func fabric(many int) (*devices.Inventory, *v1.Node) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	v := devices.NewInventory(nodes{n}, devices.Features(compat.Newest))
	slices := (many + resourcev1.ResourceSliceMaxDevices - 1) / resourcev1.ResourceSliceMaxDevices
	for i := range slices {
		s := testkit.ResourceSlice(fmt.Sprintf("fabric-%03d", i), "gpu.example", "fabric").Everywhere().Of(int64(slices))
		for k := range min(many-i*resourcev1.ResourceSliceMaxDevices, resourcev1.ResourceSliceMaxDevices) {
			s.Devices(testkit.Device(fmt.Sprintf("d%03d-%03d", i, k)))
		}
		v.SetSlice(s.Obj(), nil)
	}
	v.Settle()
	return v, n
}

// TestSelectorsThatCostMuch: what selectors cost counts against the steps of a question, in proportion to how many
// devices they are evaluated on. With enough steps the answer is the library's; with one less the question ends, and
// the reason names the claim or class whose selectors cost the most.
func TestSelectorsThatCostMuch(t *testing.T) {
	costlyClass := classes{"gpus": {ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{costly}}}}
	selecting := claim("bad", 1)
	selecting.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{costly}
	for _, c := range []struct {
		name    string
		claim   *resourcev1.ResourceClaim
		classes classes
		want    string
	}{
		{"of a claim", selecting, gpus, "claim default/bad: its selectors cost too much"},
		{"of a class", claim("good", 1), costlyClass, "class gpus: its selectors cost too much"},
	} {
		t.Run(c.name, func(t *testing.T) {
			needed := map[int]int{} // steps, by the number of devices
			for _, many := range []int{1000, 4000} {
				v, n := fabric(many)
				claims := []*resourcev1.ResourceClaim{c.claim}
				ask := func(steps int) devices.Answer {
					return v.Ask(v.Question(fmt.Append(nil, steps)), 0, n, claims, c.classes, devices.How{Steps: steps})
				}
				needed[many] = sort.Search(1<<13, func(steps int) bool { return ask(steps).Over == devices.Excess{} })
				if a := ask(needed[many]); a.Fits || a.Failed {
					t.Errorf("%d devices: %+v within enough steps, want the library's answer, which is that none matches", many, a)
				}
				a := ask(needed[many] - 1)
				if got := a.Over.Reason(claims); a.Fits || !a.Failed || a.Ends || !strings.HasPrefix(got, c.want) {
					t.Errorf("%d devices: %+v with a step less, because of %q, want no more than this node rejected because of %q", many, a, got, c.want)
				}
			}
			if per := needed[1000] * devices.CostPerStep / 1000; per < 80 || per > 250 {
				t.Errorf("%d are counted for an evaluation, want some 120", per)
			}
			if a, b := needed[1000], needed[4000]; b < a*39/10 || b > a*41/10 {
				t.Errorf("%d steps for 1,000 devices and %d for 4,000, want four times as many", a, b)
			}
		})
	}
}

// TestPropertyBoundedAnswersAreTheLibrarys: within a bound the answer is what it is without one, or says which bound
// was hit; and an answer doesn't get lost when there are more steps.
func TestPropertyBoundedAnswersAreTheLibrarys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list nodes
		for i := range 3 {
			list = append(list, testkit.Node(fmt.Sprint("n", i)).Zone(fmt.Sprint("z", i)).Obj())
		}
		published := testkit.RandomDevices(t, list)
		all := classes{}
		v := devices.NewInventory(list, devices.Features(compat.Newest))
		for _, o := range published {
			switch o := o.(type) {
			case *resourcev1.ResourceSlice:
				v.SetSlice(o, nil)
			case *resourcev1.DeviceClass:
				all[o.Name] = o
			}
		}
		v.Settle()
		var claims []*resourcev1.ResourceClaim
		for _, o := range testkit.RandomDeviceClaims(t, published) {
			if c := o.(*resourcev1.ResourceClaim); c.Status.Allocation == nil {
				claims = append(claims, c)
			}
		}
		if len(claims) == 0 {
			return
		}
		claims = claims[:min(len(claims), 2)]
		if r := claims[0].Spec.Devices.Requests[0].Exactly; r != nil && testkit.Uniform(t, 2, "costly") == 0 {
			r.Selectors = append(r.Selectors, costly)
		}
		for i, n := range list {
			ask := func(steps int) devices.Answer {
				return v.Ask(v.Question(fmt.Append(nil, steps)), int32(i), n, claims, all, devices.How{Steps: steps})
			}
			want, answered := ask(1<<20), false
			if want.Over != (devices.Excess{}) {
				t.Fatalf("%+v with a million steps for a few devices", want)
			}
			for _, steps := range []int{0, 1, 2, 5, 10, 20, 50, 100, 200, 500} {
				got := ask(steps)
				over := got.Over != devices.Excess{}
				if over && (got.Fits || got.Ends || answered) || !over && (got.Fits != want.Fits || got.Score != want.Score || got.Failed != want.Failed || got.Ends != want.Ends) {
					t.Fatalf("node %s: %+v within %d steps (answered with fewer: %t), and %+v without a bound", n.Name, got, steps, answered, want)
				}
				answered = answered || !over
			}
		}
	})
}
