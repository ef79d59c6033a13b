package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

// TestTextSaysWhatWasStillToCome has one run that ended before its pods came, and
// one that didn't.
func TestTextSaysWhatWasStillToCome(t *testing.T) {
	for toCome, want := range map[int]string{0: "5: 0 bound, 0 completed, 0 running, 2 pending\n", 13: "2 pending; 13 still to come\n"} {
		s := &scenario.Summary{}
		s.Pods.Total, s.Pods.Pending, s.Pods.ToCome = 5, 2, toCome
		var out bytes.Buffer
		if err := report.Compare(&out, s); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%d to come: got\n%s\nwant …%s…", toCome, out.String(), want)
		}
	}
}
