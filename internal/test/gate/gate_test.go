package gate

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var someDay = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func history(t *testing.T, lines ...string) History {
	t.Helper()
	h, err := Read("history.tsv", strings.NewReader(strings.Join(append([]string{header}, lines...), "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestFailures has a ratio fail under seven tenths of its newest entry, allocations fail above
// theirs, and a figure that only one side has.
func TestFailures(t *testing.T) {
	h := history(t, "2026-11-01\taaaa\tratio\tplain\t200", "2026-11-02\tbbbb\tratio\tplain\t100", "2026-11-02\tbbbb\tallocs\tplain\t2")
	for _, x := range []struct {
		measured []Figure
		want     []string
	}{
		{[]Figure{{Ratio, "plain", 70}, {Allocs, "plain", 2}}, nil},
		{[]Figure{{Ratio, "plain", 900}, {Allocs, "plain", 0}}, nil},
		{[]Figure{{Ratio, "plain", 69}, {Allocs, "plain", 2}}, []string{`the ratio of "plain" is 69, under 70, its floor: it was 100 at bbbb`}},
		{[]Figure{{Ratio, "plain", 100}, {Allocs, "plain", 3}}, []string{`the allocs of "plain" are 3, more than 2, as it was at bbbb`}},
		{[]Figure{{Ratio, "plain", 100}, {Allocs, "plain", 2}, {Ratio, "new", 5}}, []string{`the ratio of "new" isn't in the history: record it (make bench WHAT=gate RECORD=1)`}},
		{[]Figure{{Allocs, "plain", 2}}, []string{`the ratio of "plain" wasn't measured`}},
		{nil, []string{`the ratio of "plain" wasn't measured`, `the allocs of "plain" wasn't measured`}},
	} {
		if got := h.Failures(x.measured); !slices.Equal(got, x.want) {
			t.Errorf("%v: got %q, want %q", x.measured, got, x.want)
		}
	}
}

// TestWorse takes the lower ratio and the more allocations of two runs.
func TestWorse(t *testing.T) {
	one := []Figure{{Ratio, "plain", 100}, {Allocs, "plain", 2}}
	got, err := Worse(one, []Figure{{Ratio, "plain", 120}, {Allocs, "plain", 3}})
	if want := []Figure{{Ratio, "plain", 100}, {Allocs, "plain", 3}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	for _, other := range [][]Figure{one[:1], {one[1], one[0]}} {
		if _, err := Worse(one, other); err == nil {
			t.Errorf("%v and %v are compared", one, other)
		}
	}
}

// TestRecord has a line more for what is new, what has changed by more than a tenth, and what would
// fail.
func TestRecord(t *testing.T) {
	h := history(t, "2026-11-01\taaaa\tratio\tplain\t100", "2026-11-01\taaaa\tratio\tspread\t100", "2026-11-01\taaaa\tallocs\tplain\t0", "2026-11-01\taaaa\tallocs\tspread\t1000")
	var out bytes.Buffer
	after := h.Record([]Figure{{Ratio, "plain", 110}, {Ratio, "spread", 89}, {Allocs, "plain", 1}, {Allocs, "spread", 1010}, {Ratio, "new", 7.25}}, someDay, "cccc")
	if err := after.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := header + `
2026-11-01	aaaa	ratio	plain	100
2026-11-01	aaaa	ratio	spread	100
2026-11-01	aaaa	allocs	plain	0
2026-11-01	aaaa	allocs	spread	1000
2026-11-22	cccc	ratio	spread	89
2026-11-22	cccc	allocs	plain	1
2026-11-22	cccc	allocs	spread	1010
2026-11-22	cccc	ratio	new	7.25
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	again, err := Read("history.tsv", &out)
	if err != nil || !slices.Equal(again, after) {
		t.Errorf("what was written is read as %v (%v), want %v", again, err, after)
	}
	if len(h) != 4 {
		t.Errorf("the history that was given has %d lines now", len(h))
	}
}

// TestReadNamesTheBrokenLine: the error has the file, the line and what to write there.
func TestReadNamesTheBrokenLine(t *testing.T) {
	good := header + "\n2026-11-01\taaaa\tratio\tplain\t100\n"
	for text, want := range map[string]string{
		"":                                        "", // an empty file has no lines
		"day,commit\n":                            `history.tsv:1: "day,commit" isn't the header`,
		good + "2026-11-01 aaaa ratio plain 100":  `history.tsv:3: "2026-11-01 aaaa ratio plain 100" has 1 fields between tabs, not the 5 of`,
		good + "1.11.2026\ta\tratio\tplain\t1":    `history.tsv:3: day "1.11.2026" isn't a date such as 2026-01-31`,
		good + "2026-11-01\ta\tspeed\tplain\t1":   `history.tsv:3: kind "speed" is none of ratio, allocs, nodes, removable, pods/s, CPU ms/pod, plan ms, pass ms`,
		good + "2026-11-01\ta\tratio\tplain\tNaN": `history.tsv:3: value "NaN" isn't a number above 0, or 0 allocations`,
		good + "2026-11-01\ta\tratio\tplain\t0":   `history.tsv:3: value "0" isn't a number above 0, or 0 allocations`,
		good + "<<<<<<< HEAD":                     `history.tsv:3: "<<<<<<< HEAD" has 1 fields`,
	} {
		_, err := Read("history.tsv", strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestMeasured takes the smallest of several runs of each benchmark.
func TestMeasured(t *testing.T) {
	const printed = `goos: linux
BenchmarkPlacement/case=hard_zone_spread,_3_zones/by=kube-scheduler-2         	     100	   3424000 ns/op	    8000 B/op	      90 allocs/op
BenchmarkPlacement/case=hard_zone_spread,_3_zones/by=kube-scheduler-2         	     100	   3000000 ns/op	    8000 B/op	      90 allocs/op
BenchmarkPlacement/case=hard_zone_spread,_3_zones/by=berth-2                  	     100	     17000 ns/op	    8000 B/op	       9 allocs/op
BenchmarkPlacement/case=hard_zone_spread,_3_zones/by=berth-2                  	     100	     15000 ns/op	    8000 B/op	       9 allocs/op
PASS
`
	got, err := Ratios(strings.NewReader(printed))
	if want := []Figure{{Ratio, "hard zone spread, 3 zones", 200}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	got, err = AllocsOf(strings.NewReader("BenchmarkPlace/nodes=5000/plain-2 \t 20000\t 400 ns/op\t 12 nodes\t 16 B/op\t 1 allocs/op\nBenchmarkPlace/nodes=5000/plain-2 \t 20000\t 400 ns/op\t 12 nodes\t 16 B/op\t 0 allocs/op\nBenchmarkRefusal/nobody_lower \t 20000\t 400 ns/op\t 16 B/op\t 23 allocs/op\n"))
	if want := []Figure{{Allocs, "plain", 0}, {Allocs, "Refusal/nobody lower", 23}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}

// TestNoPeerNoPass: without kube-scheduler's side there is an error, and no figures.
func TestNoPeerNoPass(t *testing.T) {
	for text, want := range map[string]string{
		"": "no benchmark of kube-scheduler and Berth ran",
		"BenchmarkPlacement/case=plain/by=berth-2 \t 100\t 15000 ns/op\n":          `case "plain" lacks a time: kube-scheduler's is 0 ns, Berth's 15000 ns`,
		"BenchmarkPlacement/case=plain/by=kube-scheduler-2 \t 100\t 15000 ns/op\n": `case "plain" lacks a time: kube-scheduler's is 15000 ns, Berth's 0 ns`,
		"BenchmarkOther-2 \t 100\t 15000 ns/op\n":                                  `benchmark "BenchmarkOther" isn't named …/case=NAME/by=WHO`,
	} {
		if got, err := Ratios(strings.NewReader(text)); err == nil || err.Error() != want || got != nil {
			t.Errorf("%q: got %v and error %v, want %s", text, got, err, want)
		}
	}
	if _, err := AllocsOf(strings.NewReader("PASS\n")); err == nil {
		t.Error("no allocations were measured, and there is no error")
	}
}

// TestPlansAreHeldByCounts: a plan that buys more nodes, allocates more, or a pass that finds fewer
// nodes fails; a time fails never, and is said to be slower. Allocations of maps may vary a little.
func TestPlansAreHeldByCounts(t *testing.T) {
	h := history(t, "2026-11-01\taaaa\tnodes\tPlan\t22000", "2026-11-01\taaaa\tremovable\tPass\t600", "2026-11-01\taaaa\tallocs\tPlan\t100000",
		"2026-11-01\taaaa\tplan ms\tPlan\t70", "2026-11-01\taaaa\tpods/s\tbasic\t1000")
	good := []Figure{{Nodes, "Plan", 22000}, {Removable, "Pass", 600}, {Allocs, "Plan", 100400}, {PlanTime, "Plan", 99}, {Rate, "basic", 701}}
	if f, s := h.Failures(good), h.Slower(good); f != nil || s != nil {
		t.Errorf("got failures %q, slower %q; want none", f, s)
	}
	bad := []Figure{{Nodes, "Plan", 22001}, {Removable, "Pass", 599}, {Allocs, "Plan", 100600}, {PlanTime, "Plan", 101}, {Rate, "basic", 699}}
	if got, want := h.Failures(bad), []string{
		`the nodes of "Plan" are 22001, more than 22000, as it was at aaaa`,
		`the removable of "Pass" is 599, under 600, its floor: it was 600 at aaaa`,
		`the allocs of "Plan" are 100600, more than 100000, as it was at aaaa`,
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := h.Slower(bad), []string{
		`the plan ms of "Plan" is 101, beyond 100: it was 70 at aaaa`,
		`the pods/s of "basic" is 699, beyond 700: it was 1000 at aaaa`,
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMeasuredPlans reads the metrics that benchmarks of plans and passes report, and their times.
func TestMeasuredPlans(t *testing.T) {
	const printed = `BenchmarkPlan/plain,_1_per_node-2 	 2	 143812457 ns/op	 22000 nodes	 6902288 B/op	 110439 allocs/op
BenchmarkPlan/plain,_1_per_node-2 	 2	 100000000 ns/op	 22000 nodes	 6902280 B/op	 110438 allocs/op
BenchmarkPass/1000nodes/next-2 	 2	 1500000 ns/op	 600.0 removable	 331032 B/op	 1333 allocs/op
PASS
`
	got, err := CountsOf(strings.NewReader(printed))
	if want := []Figure{{Allocs, "Plan/plain, 1 per node", 110438}, {Nodes, "Plan/plain, 1 per node", 22000}, {Allocs, "Pass/1000nodes/next", 1333}, {Removable, "Pass/1000nodes/next", 600}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	got, err = TimesOf(strings.NewReader(printed))
	if want := []Figure{{PlanTime, "Plan/plain, 1 per node", 100}, {PassTime, "Pass/1000nodes/next", 1.5}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	for name, f := range map[string]func(string) ([]Figure, error){
		"counts": func(s string) ([]Figure, error) { return CountsOf(strings.NewReader(s)) },
		"times":  func(s string) ([]Figure, error) { return TimesOf(strings.NewReader(s)) },
		"rates":  func(s string) ([]Figure, error) { return RatesOf(strings.NewReader(s)) },
	} {
		for _, text := range []string{"PASS\n", "", "{}"} {
			if got, err := f(text); err == nil {
				t.Errorf("%s of %q are %v, want an error", name, text, got)
			}
		}
	}
}

// TestRates reads what devcluster bench prints: the better of Berth's rounds.
func TestRates(t *testing.T) {
	got, err := RatesOf(strings.NewReader(`{"cpus": 2, "cases": [{"name": "basic", "runs": [
		{"contender": "kube-scheduler", "podsPerSecond": {"mean": 9000}, "cpuMsPerPod": 0.01},
		{"contender": "berth", "podsPerSecond": {"mean": 900}, "cpuMsPerPod": 0.5},
		{"contender": "berth", "podsPerSecond": {"mean": 1000}, "cpuMsPerPod": 0.6}]}]}`))
	if want := []Figure{{Rate, "basic", 1000}, {CPU, "basic", 0.5}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	if got, err := RatesOf(strings.NewReader(`{"cases": [{"name": "basic", "runs": [{"contender": "kube-scheduler", "podsPerSecond": {"mean": 9}, "cpuMsPerPod": 1}]}]}`)); err == nil || got != nil {
		t.Errorf("a case without Berth gives %v, want an error", got)
	}
}

// TestEachCommitHasItsPlace: a night adds its commit to the plots; one that is repeated replaces its
// own figures; and a slow one moves no floor.
func TestEachCommitHasItsPlace(t *testing.T) {
	floors := history(t, "2026-11-01\taaaa\tratio\tplain\t100")
	var nights History
	for i, commit := range []string{"aaaa", "bbbb", "cccc", "bbbb"} {
		nights = nights.Night([]Figure{{Ratio, "plain", float64(100 - 20*i)}, {Rate, "basic", 1000}}, someDay.AddDate(0, 0, int(commit[0])), commit)
	}
	if len(nights) != 6 || !slices.Equal(nights.commits(), []string{"aaaa", "bbbb", "cccc"}) {
		t.Fatalf("the nights are %v", nights)
	}
	got := Plot(floors, nights, Figure{Kind: Ratio, Case: "plain"})
	for _, want := range []string{
		`class="line c0" points="60.0,53.3 190.0,123.3 320.0,100.0"`, // 100, 40 and 60 of 120
		`class="line dashed c5" points="60.0,88.3 320.0,88.3"`,       // at 70
		`<circle class="dot c1" cx="190.0"`,                          // under the floor
		`<circle class="dot c0" cx="60.0"`,                           // above it
		">aaaa<", ">bbbb<", ">cccc<",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the plot lacks %s:\n%s", want, got)
		}
	}
	page, err := Page(floors, nights)
	if err != nil || strings.Count(page, "<svg") != 2 {
		t.Errorf("%v: the page has %d plots, want 2", err, strings.Count(page, "<svg"))
	}
	if all := RatiosPlot(floors, nights); strings.Count(all, "<circle") != 3 {
		t.Errorf("the plot of ratios has %d points, want 3:\n%s", strings.Count(all, "<circle"), all)
	}
}

// TestCasesBelowTheLeastRateFail, but for those that have a reason, which must be measured and stand in the
// documentation.
func TestCasesBelowTheLeastRateFail(t *testing.T) {
	var all []Figure
	for name := range slowCases {
		all = append(all, Figure{Rate, name, 50})
	}
	for _, x := range []struct {
		measured []Figure
		want     []string
	}{
		{nil, nil},
		{[]Figure{{CPU, "basic", 1}}, nil},
		{append(slices.Clone(all), Figure{Rate, "basic", 300}), nil},
		{append(slices.Clone(all), Figure{Rate, "basic", 299}, Figure{Rate, "storm", 1000}),
			[]string{`the pods/s of "basic" is 299, under 300: if other work was on the machine, measure again`}},
		{slices.DeleteFunc(slices.Clone(all), func(f Figure) bool { return f.Case == "burst" }),
			[]string{`"burst" may have less than 300 pods a second, and is no case of devcluster bench`}},
	} {
		if got := TooSlow(x.measured); !slices.Equal(got, x.want) {
			t.Errorf("%v: got %q, want %q", x.measured, got, x.want)
		}
	}
	raw, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range slowCases {
		if row := fmt.Sprintf("| %s | %s |", name, why); !strings.Contains(string(raw), row) {
			t.Errorf("docs/performance.md lacks the row %s", row)
		}
	}
}
