package sim

import (
	"testing"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// TestABindNeedsItsClaimsBound: a bind fails while one of the pod's claims isn't bound,
// whether or not it has anything to write.
func TestABindNeedsItsClaimsBound(t *testing.T) {
	for _, c := range []struct {
		name   string
		claims []string
		want   string // the error; "" for none
	}{
		{"the pod has no claim", nil, ""},
		{"its claim is bound", []string{"bound"}, ""},
		{"its claim is pending", []string{"pending"}, "binding volumes: claim default/pending is not bound"},
		{"its claim is gone", []string{"gone"}, "binding volumes: claim default/gone is not bound"},
		{"one of its claims is pending", []string{"bound", "pending"}, "binding volumes: claim default/pending is not bound"},
	} {
		w := newTestWorld(t, "  end: {at: 1h}\n")
		w.createAll(testkit.Claim("bound", "fast").Bound("v").Obj(), testkit.Claim("pending", "fast").Obj())
		got := ""
		if err := w.bindClaims(&step.Bind{Namespace: "default", Name: "p", Node: "n", Claims: c.claims}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got error %q, want %q", c.name, got, c.want)
		}
	}
}
