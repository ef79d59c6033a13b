package step_test

import (
	"strings"
	"testing"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// TestTheDigestIsOfWhatWasDecided writes one decision, and others that differ from it in one
// field each: all are in the text as they are, and those fields that only explain the
// decision leave the digest as it is.
func TestTheDigestIsOfWhatWasDecided(t *testing.T) {
	ledger := func(d step.Decision) (digest, text string) {
		var out strings.Builder
		l := step.Ledger{To: &out}
		l.Add([]step.Decision{d})
		return l.Digest(), out.String()
	}
	base := step.Decision{Seq: 1, Kind: step.ScaledUp, Group: "g", Nodes: 2}
	digest, _ := ledger(base)
	for _, x := range []struct {
		name   string
		change func(*step.Decision)
		same   bool
		want   string
	}{
		{"more nodes", func(d *step.Decision) { d.Nodes = 3 }, false, `"nodes":3`},
		{"another position", func(d *step.Decision) { d.Position = 7 }, true, `"position":7`},
		{"how many units of pod groups its victims are", func(d *step.Decision) { d.Disruptions = 3 }, true, `"disruptions":3`},
		{"how it was chosen", func(d *step.Decision) { d.Choice = &autoscaler.Choice{Plan: 4, By: "price"} }, true, `"choice":{"plan":4,"by":"price"}`},
		{"what else it could have done", func(d *step.Decision) {
			d.Weighed = &weighing.Result{Policy: weighing.BuyFirst, Chosen: weighing.Buys}
		}, true, `"weighed":{"policy":"buy-first","chosen":"buys"}`},
	} {
		d := base
		x.change(&d)
		got, text := ledger(d)
		if (got == digest) != x.same || !strings.Contains(text, x.want) {
			t.Errorf("%s: the digest is the same: %t, want %t; the ledger is %s, want it with %s", x.name, got == digest, x.same, text, x.want)
		}
	}
}
