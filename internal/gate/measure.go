package gate

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/benchmark/parse"
)

// processors is the number of processors at the end of a benchmark's name.
var processors = regexp.MustCompile(`-\d+$`)

// run is the smallest that one benchmark has measured in all its runs: other work on the machine
// makes figures larger, never smaller.
type run struct {
	name   string
	nanos  float64
	allocs uint64
}

// smallest reads the output of benchmarks, in the order in which they ran.
func smallest(r io.Reader) ([]run, error) {
	set, err := parse.ParseSet(r)
	if err != nil {
		return nil, fmt.Errorf("reading what benchmarks printed: %w", err)
	}
	var all []*parse.Benchmark
	for _, of := range set {
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b *parse.Benchmark) int { return a.Ord - b.Ord })
	var out []run
	for _, b := range all {
		x := run{processors.ReplaceAllString(b.Name, ""), b.NsPerOp, b.AllocsPerOp}
		if i := slices.IndexFunc(out, func(o run) bool { return o.name == x.name }); i < 0 {
			out = append(out, x)
		} else {
			out[i].nanos, out[i].allocs = min(out[i].nanos, x.nanos), min(out[i].allocs, x.allocs)
		}
	}
	return out, nil
}

// readable returns a part of a benchmark's name with the spaces that it was given.
func readable(name string) string { return strings.ReplaceAll(name, "_", " ") }

// Ratios returns the ratios of benchmarks named …/case=NAME/by=kube-scheduler and …/by=berth. A
// case with one of the two is an error: a gate without a peer would let everything pass.
func Ratios(r io.Reader) ([]Figure, error) {
	runs, err := smallest(r)
	if err != nil {
		return nil, err
	}
	type pair struct{ peer, own float64 }
	pairs := map[string]*pair{}
	var cases []string
	for _, x := range runs {
		_, rest, ok := strings.Cut(x.name, "/case=")
		name, who, both := strings.Cut(rest, "/by=")
		if !ok || !both {
			return nil, fmt.Errorf("benchmark %q isn't named …/case=NAME/by=WHO", x.name)
		}
		if pairs[name] == nil {
			pairs[name] = &pair{}
			cases = append(cases, name)
		}
		switch who {
		case "kube-scheduler":
			pairs[name].peer = x.nanos
		case "berth":
			pairs[name].own = x.nanos
		}
	}
	var out []Figure
	for _, name := range cases {
		p := pairs[name]
		if p.peer <= 0 || p.own <= 0 {
			return nil, fmt.Errorf("case %q lacks a time: kube-scheduler's is %v ns, Berth's %v ns", readable(name), p.peer, p.own)
		}
		out = append(out, Figure{Ratio, readable(name), p.peer / p.own})
	}
	if len(out) == 0 {
		return nil, errors.New("no benchmark of kube-scheduler and Berth ran")
	}
	return out, nil
}

// AllocsOf returns the allocations of benchmarks: of placements by case, of others by name.
func AllocsOf(r io.Reader) ([]Figure, error) {
	runs, err := smallest(r)
	if err != nil {
		return nil, err
	}
	var out []Figure
	for _, x := range runs {
		name := strings.TrimPrefix(x.name, "Benchmark")
		if parts := strings.SplitN(name, "/", 3); parts[0] == "Place" && len(parts) == 3 {
			name = parts[2] // below the number of nodes
		}
		out = append(out, Figure{Allocs, readable(name), float64(x.allocs)})
	}
	if len(out) == 0 {
		return nil, errors.New("no benchmark reported allocations")
	}
	return out, nil
}
