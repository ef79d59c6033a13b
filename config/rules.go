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
	// Gates are the feature gates that were given and that Berth honours, those with the version's
	// default included: another version may have another. Nil for none.
	Gates map[string]bool `json:",omitempty"`
}

// set records a gate that was given and that Berth honours.
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

// PodGroups reports whether the members of PodGroups are placed together: unless GenericWorkload is false.
func (r Rules) PodGroups() bool {
	on, given := r.Gates[GenericWorkload]
	return on || !given
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
func (r Rules) setGates(o *plugins.Options) {
	set := func(to **bool, gate string) {
		if on, ok := r.Gates[gate]; ok {
			*to = &on
		}
	}
	set(&o.StorageCapacityScoring, storageCapacityScoring)
	set(&o.VolumeLimitScaling, volumeLimitScaling)
}

// LoadFor reads a KubeSchedulerConfiguration v1 file as kube-scheduler with these rules does. All its
// errors are reported together, each naming its field.
func LoadFor(path string, r Rules) (Scheduler, error) { return (&File{Path: path}).For(r) }

// File is a KubeSchedulerConfiguration v1 file. It is read once, so that all who ask for what it says are
// told the same, whatever becomes of it. One goroutine at a time may use it.
type File struct {
	Path string // "" for no file
	text []byte // once it was read
}

// Text returns the text of the file, without its secrets left out.
func (f *File) Text() (string, error) {
	if f.text == nil {
		raw, err := os.ReadFile(f.Path)
		if err != nil {
			return "", fmt.Errorf("reading the scheduler configuration: %w", err)
		}
		f.text = append([]byte{}, raw...) // not nil, though it may be empty
	}
	return string(f.text), nil
}

// For returns what the file says to kube-scheduler with these rules, as LoadFor does, or the defaults
// where there is no file.
func (f *File) For(r Rules) (Scheduler, error) {
	if f.Path == "" {
		return DefaultFor(r), nil
	}
	text, err := f.Text()
	if err != nil {
		return Scheduler{}, err
	}
	out, err := ParseFor([]byte(text), r)
	if err != nil {
		return Scheduler{}, fmt.Errorf("scheduler configuration %s:\n%w", f.Path, err)
	}
	return out, nil
}
