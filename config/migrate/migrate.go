package migrate

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Options say what is to be migrated, and to what.
type Options struct {
	// Files are values of Cluster Autoscaler's chart or manifests with its Deployment, "-" for Stdin. Of several
	// files of values the later ones count more.
	Files []string
	Stdin io.Reader
	// Args are flags of Cluster Autoscaler that count beside those of the files.
	Args []string
	// Scheduler says that Berth takes the place of kube-scheduler, too.
	Scheduler bool
	// Flags are those of berth run; they are set to what is kept.
	Flags *pflag.FlagSet
	// Validate returns what is wrong with the flags together, once they are set.
	Validate func() error
}

// Fate is what becomes of a setting.
type Fate string

// The fates, in the order in which they are printed.
const (
	Kept     Fate = "kept"
	Changed  Fate = "changed"
	Provider Fate = "for the server of the provider"
	NoEffect Fate = "no effect, left out"
	LeftOut  Fate = "not in the chart, left out"
	Refused  Fate = "refused, left out"
)

var fates = []Fate{Kept, Changed, Provider, NoEffect, LeftOut, Refused}

// Line is what becomes of one setting.
type Line struct {
	Setting string // a flag with its value, or the path of a value
	Fate    Fate
	Why     string // "" where the fate says enough
}

// Result is what Berth is to be started with.
type Result struct {
	From   string         // files, for people
	Values map[string]any // of Berth's chart
	Lines  []Line         // in the order of the settings
}

// Refusals returns how many settings are refused.
func (r *Result) Refusals() (n int) {
	for _, l := range r.Lines {
		if l.Fate == Refused {
			n++
		}
	}
	return n
}

// setup is a Cluster Autoscaler as its files describe it, while it is migrated.
type setup struct {
	*Options
	args   []string // its command line, without the program
	values map[string]any
	lines  []Line
	// provider is the --cloud-provider; external says that it becomes a server of its own.
	provider string
	external bool
	server   sidecar // of a provider for which runsInPod
}

// say records what becomes of a setting.
func (s *setup) say(setting string, fate Fate, why string, args ...any) {
	if len(args) > 0 {
		why = fmt.Sprintf(why, args...)
	}
	s.lines = append(s.lines, Line{setting, fate, why})
}

// ClusterAutoscaler returns Berth's values for a Cluster Autoscaler.
func ClusterAutoscaler(o Options) (*Result, error) {
	s := &setup{Options: &o, values: map[string]any{}}
	if err := s.read(); err != nil {
		return nil, err
	}
	s.args = append(s.args, o.Args...)
	if len(s.args) == 0 {
		return nil, fmt.Errorf("there are no flags of Cluster Autoscaler: give values of its chart or its Deployment with --file, or its flags behind --")
	}
	if err := s.migrateFlags(); err != nil {
		return nil, err
	}
	scheduler := map[string]any{"profiles": []any{map[string]any{"schedulerName": "default-scheduler"}}}
	if o.Scheduler {
		scheduler["leaderElection"] = map[string]any{"resourceName": "kube-scheduler"}
	}
	s.values["schedulerConfiguration"] = scheduler
	return &Result{From: strings.Join(o.Files, ", "), Values: s.values, Lines: s.lines}, nil
}

// read reads the files: values, which are merged, or manifests.
func (s *setup) read() error {
	merged := map[string]any{}
	for _, file := range s.Files {
		raw, err := readFile(file, s.Stdin)
		if err != nil {
			return err
		}
		for i, text := range strings.Split("\n"+string(raw), "\n---") {
			var doc map[string]any
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			switch {
			case doc["kind"] != nil:
				if err := s.readManifest(text, doc); err != nil {
					return fmt.Errorf("%s, document %d: %w", file, i+1, err)
				}
			default:
				merge(merged, doc)
			}
		}
	}
	if len(merged) > 0 {
		return s.readValues(merged)
	}
	return nil
}

// maxSize is how long a file may be, in bytes.
const maxSize = 4 << 20

// readFile returns the text of a file, "-" for stdin.
func readFile(file string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // nothing was written
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(raw) > maxSize {
		return nil, fmt.Errorf("%s has more than %d bytes; give the values or the manifest of Cluster Autoscaler only", file, maxSize)
	}
	return raw, nil
}

// merge sets values as Helm does with several files: maps are merged, everything else is replaced.
func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		if isMap && wasMap {
			merge(old, inner)
		} else {
			into[key] = value
		}
	}
}

// empty reports whether a value says nothing.
func empty(value any) bool {
	switch x := value.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case float64:
		return x == 0
	case []any:
		return len(x) == 0
	case map[string]any:
		return !slices.ContainsFunc(collect(x), func(inner any) bool { return !empty(inner) })
	}
	return false
}

// collect returns the values of a map.
func collect(m map[string]any) []any {
	out := make([]any, 0, len(m))
	for _, value := range m {
		out = append(out, value)
	}
	return out
}
