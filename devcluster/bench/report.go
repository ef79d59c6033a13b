package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// This file writes results for people. Numbers of a contender are medians of its runs.

// Print writes the result as tables: a line for each contender of a case, then how
// Berth's numbers compare with kube-scheduler's and with the bare loops'.
func (r *Result) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d CPUs shared by the scheduler, the API server and etcd; medians of the runs\n", r.CPUs)
	for _, c := range r.Cases {
		fmt.Fprintf(out, "\n%s: %d nodes, %d pods; %s\n", c.Name, c.Nodes, c.Pods, c.About)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "\truns\tpods/s\tp50\tp90\tp95\tp99\tCPU ms/pod\tAPI server\tetcd\tpeak MiB\tattempts/pod\tfirst s\tevents s\t")
		names := c.contenders()
		for _, name := range names {
			m := func(f func(Run) float64) float64 { return c.median(name, f) }
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f\t%.2f\t%.1f\t%.1f\t\n", name, c.runs(name),
				m(podsPerS), m(func(r Run) float64 { return r.PodsPerS.P50 }), m(func(r Run) float64 { return r.PodsPerS.P90 }),
				m(func(r Run) float64 { return r.PodsPerS.P95 }), m(func(r Run) float64 { return r.PodsPerS.P99 }),
				m(cpuMs), m(func(r Run) float64 { return r.APIServerMs }), m(func(r Run) float64 { return r.EtcdMs }),
				m(func(r Run) float64 { return float64(r.PeakMemory) / (1 << 20) }), m(func(r Run) float64 { return r.Attempts }),
				m(func(r Run) float64 { return r.FirstAfterS }), m(func(r Run) float64 { return r.EventsAfterS }))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(out, "  API calls per pod, %s: %s\n", name, c.calls(name))
		}
		if faster, cheaper, ok := c.Ratios(); ok {
			fmt.Fprintf(out, "  berth places %.1f times the pods per second, with 1/%.1f of the CPU time per pod\n", faster, cheaper)
		}
		for _, bare := range []string{BareBinds, BareBindEvents} {
			if ceiling := c.median(bare, podsPerS); ceiling > 0 {
				fmt.Fprintf(out, "  berth reaches %.0f %% of the %s, kube-scheduler %.0f %%\n", 100*c.median(Berth, podsPerS)/ceiling, bare, 100*c.median(KubeScheduler, podsPerS)/ceiling)
			}
		}
	}
	return nil
}

func podsPerS(r Run) float64 { return r.PodsPerS.Mean }
func cpuMs(r Run) float64    { return r.CPUMs }

// Ratios returns how many times kube-scheduler's pods per second Berth's are, and
// how many times Berth's CPU time per pod kube-scheduler's is, between medians.
func (c CaseResult) Ratios() (faster, cheaper float64, ok bool) {
	theirs, ours := c.median(KubeScheduler, podsPerS), c.median(Berth, podsPerS)
	theirCPU, ourCPU := c.median(KubeScheduler, cpuMs), c.median(Berth, cpuMs)
	if theirs == 0 || ourCPU == 0 {
		return 0, 0, false
	}
	return ours / theirs, theirCPU / ourCPU, true
}

// contenders returns the names of those that ran, in the order of their first run.
func (c CaseResult) contenders() (out []string) {
	for _, r := range c.Runs {
		if !slices.Contains(out, r.Contender) {
			out = append(out, r.Contender)
		}
	}
	return out
}

// runs returns how often a contender ran.
func (c CaseResult) runs(name string) (n int) {
	for _, r := range c.Runs {
		if r.Contender == name {
			n++
		}
	}
	return n
}

// median returns the median of a number over a contender's runs, 0 without any.
func (c CaseResult) median(name string, f func(Run) float64) float64 {
	var all []float64
	for _, r := range c.Runs {
		if r.Contender == name {
			all = append(all, f(r))
		}
	}
	return middle(all)
}

// middle returns the median, 0 of nothing. It sorts its argument.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// calls lists a contender's median API calls per pod, the most frequent first; calls
// that are made for less than one pod in 200 are left out.
func (c CaseResult) calls(name string) string {
	all := map[string]float64{}
	for _, r := range c.Runs {
		if r.Contender == name {
			for verb := range r.Calls {
				all[verb] = c.median(name, func(r Run) float64 { return r.Calls[verb] })
			}
		}
	}
	verbs := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	var out []string
	for _, verb := range verbs {
		if all[verb] >= 0.005 {
			out = append(out, fmt.Sprintf("%.2f %s", all[verb], verb))
		}
	}
	return strings.Join(out, ", ")
}
