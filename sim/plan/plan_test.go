package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/sim/scenario"
)

// load returns the scenario of a spec.
func load(t *testing.T, spec string) *scenario.Run {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.yaml")
	text := `{"apiVersion": "berth.dev/v1alpha1", "kind": "Scenario", "spec": {` + spec + `}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	runs, err := scenario.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return runs[0]
}

// A large node has the cores of two small ones, for less than twice the price. There are pods for
// eight cores now, for eight later, and one that is too large.
const sixteenCores = `"nodeGroups": [
	{"name": "small", "max": 10, "pricePerHour": 1, "template": {"allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"}}},
	{"name": "large", "max": 10, "pricePerHour": 1.8, "initial": 1, "template": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}}}],
	"workload": [
	{"name": "pods", "count": 8, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}},
	{"name": "job", "kind": "Job", "count": 8, "arrive": {"after": "3h"}, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}},
	{"name": "huge", "count": 1, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}}]`

// TestPlanComparesExpanders plans for sixteen cores, of which an existing node has eight.
func TestPlanComparesExpanders(t *testing.T) {
	for _, x := range []struct {
		name      string
		empty     bool
		expanders []string
		want      []string // lines
	}{
		{"only what doesn't fit is bought", false, []string{"least-nodes", "price"}, []string{
			"9 pods pending; lower bound $1.80/h for 8 of them",
			"expander nodes $/h × bound pods placed pods not helped time",
			"least-nodes 1 1.80 1.000 8 1 3s",
			"price 2 2.00 1.111 8 1 3s", // it prefers small nodes for small pods, as upstream
		}},
		{"from nothing", true, []string{"least-nodes"}, []string{
			"17 pods pending; lower bound $3.60/h for 16 of them",
			"expander nodes $/h × bound pods placed pods not helped time",
			"least-nodes 2 3.60 1.000 16 1 3s",
		}},
	} {
		at := time.Time{}
		clock := func() time.Time { at = at.Add(3 * time.Second); return at }
		var all []*Purchase
		for _, name := range x.expanders {
			p, err := For(load(t, sixteenCores), name, Options{Empty: x.empty, Now: clock})
			if err != nil {
				t.Fatalf("%s: %v", x.name, err)
			}
			all = append(all, p)
		}
		var out strings.Builder
		if err := Print(&out, all); err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSpace(regexp.MustCompile(` *\n *`).ReplaceAllString(regexp.MustCompile(` +`).ReplaceAllString(out.String(), " "), "\n"))
		if got != strings.Join(x.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", x.name, got, strings.Join(x.want, "\n"))
		}
	}
}
