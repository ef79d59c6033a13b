package observe

import (
	"strings"

	"github.com/spf13/pflag"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/statusz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/version"
)

// This file is /statusz and /flagz, as all programs of Kubernetes 1.37 have them (KEP-4827, KEP-4828):
// plain text, and by Accept JSON or YAML of config.k8s.io/v1beta1. The ClusterRole
// system:monitoring allows both.

// installZpages adds the pages; it must come last, since /statusz lists the other paths.
func (s *Server) installZpages(m *mux.PathRecorderMux) {
	if s.Flags != nil {
		flagz.Install(m, component, s.Flags)
	}
	statusz.Install(m, component, statusz.NewRegistry(followedVersion{s: s}, statusz.WithListedPaths(m.ListedPaths())))
}

// component is Berth's name on the pages.
const component = "berth"

// followedVersion tells /statusz Berth's own version, and as the emulated one that of the rules. The
// page asks for no more.
type followedVersion struct {
	compatibility.EffectiveVersion // nil
	s                              *Server
}

// BinaryVersion implements compatibility.EffectiveVersion.
func (followedVersion) BinaryVersion() *utilversion.Version {
	if v, err := utilversion.ParseSemantic(version.Get().Version); err == nil {
		return v
	}
	return utilversion.MajorMinor(0, 0)
}

// EmulationVersion implements compatibility.EffectiveVersion: nil until the version is known.
func (f followedVersion) EmulationVersion() *utilversion.Version {
	c := f.s.shown.Load()
	if c == nil || c.Version == 0 {
		return nil
	}
	return utilversion.MajorMinor(1, uint(c.Version))
}

// Configuration is what a server shows of how it is configured. It must hold no secrets when it is
// written as JSON.
type Configuration struct {
	// Component is a KubeSchedulerConfiguration, for /configz as kube-scheduler has it.
	Component any
	// Own is Berth's.
	Own any
	// Version is that of the scheduling rules, for /statusz; 0 while it isn't known.
	Version compat.Version
}

// Show makes the server show a configuration from now on.
func (s *Server) Show(c Configuration) { s.shown.Store(&c) }

// configz returns what /configz answers, by name.
func (s *Server) configz() map[string]any {
	out := map[string]any{}
	if c := s.shown.Load(); c != nil {
		out[component] = c.Own
		if c.Component != nil {
			out["componentconfig"] = c.Component
		}
	}
	return out
}

// Flags are flags of the command line that /flagz shows. It implements flagz.Reader.
type Flags cliflag.NamedFlagSets

// GetFlagz returns the value of each flag by its name, without a user and a password in an address.
func (f Flags) GetFlagz() map[string]string {
	out := map[string]string{}
	for _, set := range f.FlagSets {
		set.VisitAll(func(flag *pflag.Flag) {
			if out[flag.Name] = strings.Join(config.FlagValues(flag), ","); len(flag.Annotations["classified"]) > 0 {
				out[flag.Name] = "CLASSIFIED"
			}
		})
	}
	return out
}
