package config

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/plugins"
)

// Rules are those of kube-scheduler that a configuration is read for, and that Berth follows under it.
type Rules struct {
	Version compat.Version
	// Gates are the feature gates that Berth honours and that don't have the version's default; nil
	// for none.
	Gates map[string]bool `json:",omitempty"`
}

// set records a gate that Berth honours and that doesn't have its default.
func (r *Rules) set(gate string, on bool) {
	if r.Gates == nil {
		r.Gates = map[string]bool{}
	}
	r.Gates[gate] = on
}

// Enabled reports whether a feature gate is on; false for one that the version doesn't have.
func (r Rules) Enabled(gate string) bool {
	if on, ok := r.Gates[gate]; ok {
		return on
	}
	return gatesByVersion[r.Version][gate].on
}

// DefaultFor returns the configuration without a file.
func DefaultFor(r Rules) Scheduler {
	out := Default()
	out.Rules = r
	out.Profiles = []plugins.Options{{SchedulerName: v1.DefaultSchedulerName}}
	r.setGates(&out.Profiles[0])
	return out
}

// setGates tells the plugins of a profile which of Gates are on, a line for each gate of honouredGates that
// a plugin depends on. It comes before the arguments of plugins, which may depend on gates, too.
func (Rules) setGates(*plugins.Options) {}

// LoadFor reads a KubeSchedulerConfiguration v1 file as kube-scheduler with these rules does. All its
// errors are reported together, each naming its field.
func LoadFor(path string, r Rules) (Scheduler, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Scheduler{}, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	out, err := ParseFor(raw, r)
	if err != nil {
		return Scheduler{}, fmt.Errorf("scheduler configuration %s:\n%w", path, err)
	}
	return out, nil
}
