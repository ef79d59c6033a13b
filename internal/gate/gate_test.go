package gate

import (
	"bytes"
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

// TestRecord has a line more for what is new and what has changed by more than a tenth.
func TestRecord(t *testing.T) {
	h := history(t, "2026-11-01\taaaa\tratio\tplain\t100", "2026-11-01\taaaa\tratio\tspread\t100", "2026-11-01\taaaa\tallocs\tplain\t0")
	var out bytes.Buffer
	after := h.Record([]Figure{{Ratio, "plain", 110}, {Ratio, "spread", 89}, {Allocs, "plain", 1}, {Ratio, "new", 7.25}}, someDay, "cccc")
	if err := after.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := header + `
2026-11-01	aaaa	ratio	plain	100
2026-11-01	aaaa	ratio	spread	100
2026-11-01	aaaa	allocs	plain	0
2026-11-22	cccc	ratio	spread	89
2026-11-22	cccc	allocs	plain	1
2026-11-22	cccc	ratio	new	7.25
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	again, err := Read("history.tsv", &out)
	if err != nil || !slices.Equal(again, after) {
		t.Errorf("what was written is read as %v (%v), want %v", again, err, after)
	}
	if len(h) != 3 {
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
		good + "2026-11-01\ta\tspeed\tplain\t1":   `history.tsv:3: kind "speed" is neither ratio nor allocs`,
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
