package live

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/step"
)

// TestPropertyNamesOfEventsAreNames has an event of any object have a name of its own that the API takes.
func TestPropertyNamesOfEventsAreNames(t *testing.T) {
	r := newRecorder(nil, "host", func() bool { return false })
	used := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, validation.DNS1123SubdomainMaxLength).Draw(t, "bytes")
		object := rapid.StringOfN(rapid.RuneFrom([]rune("abcxyz0189")), n, n, n).Draw(t, "name")
		name := r.newEvent(step.Event{Kind: "Pod", Namespace: "default", Name: object}).Name
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || used[name] {
			t.Fatalf("the event of %s is called %s, as another: %v; %v", object, name, used[name], wrong)
		}
		used[name] = true
	})
}
