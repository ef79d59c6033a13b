package gate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/benchmark/parse"
)

// processors is the number of processors at the end of a benchmark's name.
// Names must not depend on the machine.
var processors = regexp.MustCompile(`-\d+$`)

// run is the smallest that one benchmark has measured in all its runs: other work on the machine
// makes figures larger, never smaller.
type run struct {
	name    string
	nanos   float64
	allocs  uint64
	metrics map[string]float64 // of its own, by unit: those of the last run
}

// smallest reads the output of benchmarks, in the order in which they ran.
// Lines that aren't of benchmarks are passed over, so it can read the output as a whole.
func smallest(r io.Reader) (out []run, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		b, err := parse.ParseLine(lines.Text())
		if err != nil {
			continue // it isn't one of a benchmark
		}
		x := run{processors.ReplaceAllString(b.Name, ""), b.NsPerOp, b.AllocsPerOp, metricsOf(lines.Text())}
		if i := slices.IndexFunc(out, func(o run) bool { return o.name == x.name }); i < 0 {
			out = append(out, x)
		} else {
			// Time and allocations may be the smallest of different runs.
			out[i].nanos, out[i].allocs, out[i].metrics = min(out[i].nanos, x.nanos), min(out[i].allocs, x.allocs), x.metrics
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading what benchmarks printed: %w", err)
	}
	return out, nil
}

// metricsOf returns the values of a benchmark's line by their units.
func metricsOf(line string) map[string]float64 {
	out := map[string]float64{}
	fields := strings.Fields(line)
	for i := 2; i+1 < len(fields); i += 2 { // after name and number of iterations
		if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
			out[fields[i+1]] = v
		}
	}
	return out
}

// readable returns a part of a benchmark's name with the spaces that it was given.
func readable(name string) string { return strings.ReplaceAll(name, "_", " ") }

// Ratios returns the ratios of benchmarks named …/case=NAME/by=kube-scheduler and …/by=berth. A
// case with one of the two is an error: a gate without a peer would let everything pass.
// A ratio above 1 says that Berth is faster. Both ran in one process, so the machine
// cancels out.
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
		// Other peers, such as earlier versions, count for nothing.
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
// Allocations don't depend on the machine, so they are compared with fixed numbers.
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

// CountsOf returns what plans and passes of scale-down come to, of benchmarks that say it: their
// allocations, the nodes that are bought, and those that are found removable.
// A plan that buys more nodes, or a pass that finds fewer, is a regression even if it is
// faster.
func CountsOf(r io.Reader) ([]Figure, error) {
	runs, err := smallest(r)
	if err != nil {
		return nil, err
	}
	var out []Figure
	for _, x := range runs {
		name := readable(strings.TrimPrefix(x.name, "Benchmark"))
		out = append(out, Figure{Allocs, name, float64(x.allocs)})
		for _, k := range []Kind{Nodes, Removable} {
			if v, ok := x.metrics[string(k)]; ok {
				out = append(out, Figure{k, name, v})
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no benchmark of a plan ran")
	}
	return out, nil
}

// TimesOf returns the times of benchmarks, those of passes as PassTime.
// In milliseconds. They can be compared on one machine only.
func TimesOf(r io.Reader) ([]Figure, error) {
	runs, err := smallest(r)
	if err != nil {
		return nil, err
	}
	var out []Figure
	for _, x := range runs {
		kind, name := PlanTime, readable(strings.TrimPrefix(x.name, "Benchmark"))
		if strings.HasPrefix(name, "Pass/") {
			kind = PassTime
		}
		out = append(out, Figure{kind, name, x.nanos / 1e6})
	}
	if len(out) == 0 {
		return nil, errors.New("no benchmark of a plan ran")
	}
	return out, nil
}

// RatesOf returns the rates and CPU times of what devcluster bench --scheduler berth -o json prints:
// the better of each case's rounds.
// The highest rate and the lowest CPU time may be of different rounds.
func RatesOf(r io.Reader) (out []Figure, err error) {
	var printed struct {
		Cases []struct {
			Name string
			Runs []struct {
				Contender     string
				PodsPerSecond struct{ Mean float64 }
				CPUMsPerPod   float64
			}
		}
	}
	if err := json.NewDecoder(r).Decode(&printed); err != nil {
		return nil, fmt.Errorf("reading what devcluster bench printed: %w", err)
	}
	for _, c := range printed.Cases {
		rate, cpu := Figure{Kind: Rate, Case: c.Name}, Figure{Kind: CPU, Case: c.Name}
		for _, x := range c.Runs {
			if x.Contender != "berth" {
				continue
			}
			rate.Value = max(rate.Value, x.PodsPerSecond.Mean)
			if cpu.Value == 0 || x.CPUMsPerPod < cpu.Value {
				cpu.Value = x.CPUMsPerPod
			}
		}
		if rate.Value <= 0 || cpu.Value <= 0 {
			return nil, fmt.Errorf("case %q lacks a run of Berth's", c.Name)
		}
		out = append(out, rate, cpu)
	}
	if len(out) == 0 {
		return nil, errors.New("devcluster bench has measured no case")
	}
	return out, nil
}
