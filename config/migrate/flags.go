package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/config"
)

// This file decides what becomes of each flag.
// The rule is the same as for values: a flag is kept, replaced, handed to the provider's
// server, without effect, or refused, and the report says which. None is forgotten.

// given is a flag of a command line.
type given struct {
	name, value string
	set         bool // with a value; otherwise it is a switch
}

// String returns the flag as it is written.
func (g given) String() string {
	if !g.set {
		return "--" + g.name
	}
	return "--" + g.name + "=" + g.value
}

// own are the providers that Berth has itself.
// All others are compiled into Cluster Autoscaler; Berth reaches them over externalgrpc.
var own = []string{"externalgrpc", "clusterapi"}

// isExternal reports whether a provider of Cluster Autoscaler's becomes a process of its own.
func isExternal(provider string) bool { return !slices.Contains(own, provider) }

// ofCharts are the flags that Berth's chart sets itself, and by what.
// To set them again would contradict what the chart renders.
var ofCharts = map[string]string{
	"namespace": "the chart sets the release's namespace", "kubeconfig": "Berth's pod uses its ServiceAccount: install it in the cluster whose nodes it resizes", "leader-elect-resource-name": "it is schedulerConfiguration.leaderElection.resourceName; with --mode=autoscaler it is cluster-autoscaler, as here",
	"leader-elect-resource-namespace": "it is schedulerConfiguration.leaderElection.resourceNamespace", "address": "metrics and health are served over TLS at flags.secure-port; set flags.address for scrapers made for Cluster Autoscaler",
}

// ofProviders are the flags that the provider's server needs, too.
// Berth leaves them out when the provider is external, but for --nodes, whose limits it
// reads itself.
var ofProviders = []string{"cloud-provider", "cloud-config", "nodes", "node-group-auto-discovery", "cluster-name", "regional", "gce-concurrent-refreshes", "gce-mig-instances-min-refresh-wait-time",
	"aws-use-static-instance-list", "bulk-mig-instances-listing-enabled"}

// parse takes a command line apart, as pflag would.
// It doesn't call pflag's own parser: flags that nobody knows are to be in the report as
// well, with their values. A word that isn't a flag is an error, since it is more likely a
// mistyped command than a value.
func (s *setup) parse() ([]given, error) {
	var out []given
	for i := 0; i < len(s.args); i++ {
		text := strings.TrimLeft(s.args[i], "-")
		if dashes := len(s.args[i]) - len(text); dashes == 0 || dashes > 2 || text == "" {
			return nil, fmt.Errorf("%q is no flag of Cluster Autoscaler; give a file with --file, and flags behind --, each as --NAME=VALUE", s.args[i])
		}
		name, value, has := strings.Cut(text, "=")
		g := given{strings.ReplaceAll(name, "_", "-"), value, has}
		f := s.Flags.Lookup(g.name)
		takes := f == nil || f.NoOptDefVal == "" // a switch takes none
		// A flag that isn't known takes the next word, unless that is a flag: where it was
		// meant as a switch, the report shows the word beside it.
		if !has && takes && i+1 < len(s.args) && !strings.HasPrefix(s.args[i+1], "--") {
			i++
			g.value, g.set = s.args[i], true
		}
		if !g.set && f != nil && f.NoOptDefVal == "" {
			return nil, fmt.Errorf("--%s has no value", g.name)
		}
		out = append(out, g)
	}
	return out, nil
}

// migrateFlags sets the values that the flags make, and says what becomes of each.
func (s *setup) migrateFlags() error {
	flags, err := s.parse()
	if err != nil {
		return err
	}
	// The provider decides about the other flags, wherever it stands on the command line.
	if at := slices.IndexFunc(flags, func(g given) bool { return g.name == "cloud-provider" }); at >= 0 {
		s.provider = flags[at].value
	} else {
		s.provider = "gce" // Cluster Autoscaler's default
		flags = append(flags, given{"cloud-provider", s.provider, true})
	}
	s.external = isExternal(s.provider)
	foreign := map[string]config.ForeignFlag{}
	for _, f := range config.ForeignFlags() {
		foreign[f.Name] = f
	}
	// Values by flag, in order: a flag that may be repeated has several.
	kept := map[string][]string{}
	for _, g := range flags {
		switch f, isForeign := foreign[g.name]; {
		// --nodes is kept by Berth and handed to the server too (keep).
		case s.external && slices.Contains(ofProviders, g.name) && g.name != "nodes":
			s.serverFlag(g)
		case g.name == "cloud-config":
			s.say(g.String(), Changed, "the chart makes the file of cloudConfig: put its text there, with the files that it names in extraVolumes; a kubeconfig goes into a Secret, with its name in cloudConfigSecret")
		case ofCharts[g.name] != "":
			s.say(g.String(), NoEffect, ofCharts[g.name])
		case isForeign:
			s.foreign(g, f)
		default:
			s.keep(g, kept)
		}
	}
	s.finish(kept)
	return nil
}

// foreign says what becomes of a flag that Berth doesn't honour.
// The value is parsed even if nothing reads it: a command line that Cluster Autoscaler
// itself would refuse must not look as if it had been migrated. f.Accepts is true for the
// values with which the flag does nothing.
func (s *setup) foreign(g given, f config.ForeignFlag) {
	if err := s.Flags.Set(g.name, g.text(s.Flags)); err != nil {
		s.say(g.String(), Refused, "%v", err)
		return
	}
	switch {
	case !f.Refused:
		s.say(g.String(), NoEffect, f.Why)
	case f.Accepts(s.Flags.Lookup(g.name).Value.String()):
		s.say(g.String(), NoEffect, "it asks for nothing that Berth doesn't do")
	default:
		s.say(g.String(), Refused, f.Why)
	}
}

// text returns what the flag is set to.
// For a switch without a value that is pflag's NoOptDefVal, true for a boolean.
func (g given) text(fs *pflag.FlagSet) string {
	if f := fs.Lookup(g.name); !g.set && f != nil {
		return f.NoOptDefVal
	}
	return g.value
}

// keep sets a flag that Berth has.
// A value that Berth's own flag set refuses is reported, and goes no further.
func (s *setup) keep(g given, kept map[string][]string) {
	if s.Flags.Lookup(g.name) == nil {
		s.say(g.String(), Refused, "neither Cluster Autoscaler 1.36 nor Berth has it")
		return
	}
	value := g.text(s.Flags)
	if value == "" {
		s.say(g.String(), NoEffect, "it is empty, as by default")
		return
	}
	if err := s.Flags.Set(g.name, value); err != nil {
		s.say(g.String(), Refused, "%v", err)
		return
	}
	switch {
	case g.name == "nodes" && s.external:
		s.say(g.String(), Kept, "the group must have this name at the server of the provider")
		s.serverFlag(g)
	case g.name == "expander" && strings.Contains(value, "priority"):
		s.say(g.String(), Kept, "the ConfigMap cluster-autoscaler-priority-expander goes with Cluster Autoscaler's release: apply it again")
	default:
		s.say(g.String(), Kept, "")
	}
	kept[g.name] = append(kept[g.name], value)
}

// finish makes the values of what is kept, and of what every Berth needs.
// Validate sees the flags as they would be at start, those given here together; it runs
// last because whether two flags go together depends on both.
func (s *setup) finish(kept map[string][]string) {
	flags := map[string]any{"cloud-provider": s.provider}
	// Maps keep no order, and the chart sorts its flags.
	for name, all := range kept {
		flags[name] = flagValue(s.Flags.Lookup(name), all)
	}
	switch {
	case runsInPod(s.provider):
		delete(flags, "cloud-provider") // the chart sets it
		s.sidecarValues()
	case s.external:
		flags["cloud-provider"] = "externalgrpc"
		// The address can't be known here; the placeholder is to be replaced by hand, as
		// the report says.
		s.values["cloudConfig"] = "address: PROVIDER.NAMESPACE.svc:8086\n"
		s.say("--cloud-provider="+s.provider, Changed, "Berth reaches this provider through a server of Cluster Autoscaler's protocol: start one with the flags below (docs/external-providers.md), and write its address into cloudConfig")
	case s.provider == "externalgrpc":
		s.values["cloudConfig"] = "address: PROVIDER.NAMESPACE.svc:8086\n"
	}
	if !s.Scheduler {
		flags["mode"] = "autoscaler"
	}
	s.values["flags"] = flags
	if s.Validate != nil {
		if err := s.Validate(); err != nil {
			s.say("the flags together", Refused, "%v", err)
		}
	}
}

// flagValue returns the value of a flag in the chart's values.
// The chart renders a list as the flag repeated, and numbers and booleans without quotes.
// Integers and booleans count once, the last on the line, as pflag has it.
func flagValue(f *pflag.Flag, all []string) any {
	last := all[len(all)-1]
	switch f.Value.Type() {
	case "bool":
		return f.Value.String() == "true" // it takes 1 and T, too
	case "int", "int32", "int64", "uint64", "float64":
		return number(last)
	case "string", "duration", "ip":
		return last
	}
	if len(all) == 1 {
		return last
	}
	out := make([]any, 0, len(all))
	for _, value := range all {
		out = append(out, value)
	}
	return out
}
