package core_test

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
)

// TestWhatNodesAreWaitedFor: new nodes are waited for until they have what a rule needs them to have. That
// is the version's to say, and that of the profiles.
func TestWhatNodesAreWaitedFor(t *testing.T) {
	off := false
	scoring := []plugins.Rule{{Name: "NodeVolumeLimits"}, {Name: "NodeResourcesFit", Filters: true, Weight: 1}}
	for _, c := range []struct {
		name     string
		version  compat.Version
		profiles []plugins.Options
		want     cluster.NodeParts
	}{
		{"1.36", compat.V36, []plugins.Options{{}}, cluster.Devices},
		{"1.37", compat.V37, []plugins.Options{{}}, cluster.CSIDrivers | cluster.Devices},
		{"1.37 without the feature", compat.V37, []plugins.Options{{VolumeLimitScaling: &off}}, cluster.Devices},
		{"1.37 without the filter", compat.V37, []plugins.Options{{Rules: scoring}}, 0},
		{"1.37, in one of two profiles", compat.V37, []plugins.Options{{Rules: scoring}, {SchedulerName: "other"}}, cluster.CSIDrivers | cluster.Devices},
	} {
		schema := cluster.SchemaFor(c.version)
		cfg := autoscaling(func(*core.Autoscale) {})
		cfg.Profiles = []*framework.Profile{}
		for _, o := range c.profiles {
			cfg.Profiles = append(cfg.Profiles, plugins.Default(schema, o))
		}
		w, err := core.New(schema, cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := w.Step(time.Unix(1000, 0), door.Must(groups())...)
		if r.Plan == nil || r.Plan.Readiness.Parts != c.want {
			t.Errorf("%s: the request %+v, want one that waits for %b", c.name, r.Plan, c.want)
		}
		if cfg.Autoscale.Readiness.Parts != 0 {
			t.Errorf("%s: the caller's configuration has changed", c.name)
		}
	}
}
