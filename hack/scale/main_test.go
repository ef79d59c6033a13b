package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestMain lets the test's binary be a process that measures.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == measureCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestFit finds the law that points are on, and the least squares of points that are on none.
func TestFit(t *testing.T) {
	for _, x := range []struct {
		name   string
		points map[int]float64
		want   law
		ok     bool
	}{
		{"in proportion", map[int]float64{1000: 2, 5000: 10, 100000: 200}, law{0.002, 1}, true},
		{"the same everywhere", map[int]float64{1000: 7, 100000: 7}, law{7, 0}, true},
		{"squares", map[int]float64{10: 300, 100: 30000}, law{3, 2}, true},
		{"one above and one below by the same factor", map[int]float64{1: 2, 10: 10 / 4.0, 100: 200}, law{math.Cbrt(2 * 0.25 * 2), 1}, true},
		{"one size", map[int]float64{1000: 2}, law{}, false},
		{"none", nil, law{}, false},
		{"nothing was measured at one size", map[int]float64{1000: 2, 5000: 0}, law{}, false},
	} {
		got, ok := fit(x.points)
		if ok != x.ok || math.Abs(got.factor-x.want.factor) > 1e-9 || math.Abs(got.exponent-x.want.exponent) > 1e-9 {
			t.Errorf("%s: got %v (%v), want %v (%v)", x.name, got, ok, x.want, x.ok)
		}
	}
}

// TestLargest finds where a rising function passes a bound.
func TestLargest(t *testing.T) {
	square := func(x float64) float64 { return x * x }
	for _, x := range []struct{ bound, most, want float64 }{{100, 1e6, 10}, {0.5, 1e6, 0}, {1e20, 1e6, 1e6}} {
		if got := largest(square, x.bound, x.most); math.Abs(got-x.want) > 1e-6 {
			t.Errorf("squares up to %v: got %v, want %v", x.bound, got, x.want)
		}
	}
}

// TestBadFlags names the flag, the value and what would do.
func TestBadFlags(t *testing.T) {
	for _, x := range []struct{ args, want string }{
		{"--nodes 0", `--nodes: "0" isn't a number of nodes from 1 to 1000000`},
		{"--nodes 10,many", `--nodes: "many" isn't a number of nodes from 1 to 1000000`},
		{"--nodes 10,,20", `--nodes: "" isn't a number of nodes from 1 to 1000000`},
		{"--nodes 2000000", `--nodes: "2000000" isn't a number of nodes from 1 to 1000000`},
		{"--nodes 1000,1000", `--nodes: 1000 is there twice`},
		{"--report", `--report: name the file with the measurements, too: --keep FILE`},
		{"--pods-per-node 0", `--pods-per-node: 0 isn't from 1 to 100`},
		{"--pods-per-node 101", `--pods-per-node: 101 isn't from 1 to 100`},
		{"--nodes 10 --classes 101", `--classes: 101 isn't from 10, the pods per node, to 100, the pods of the smallest size`},
		{"--classes 9", `--classes: 9 isn't from 10, the pods per node, to 10000, the pods of the smallest size`},
		{"--parts engine,kubelet", `--parts: there is no part "kubelet"; there are ` + strings.Join(partNames(), ", ")},
		{"--profiles /does/not/exist", `--profiles: "/does/not/exist" isn't a folder: make it first`},
		{"--write --parts engine", `--write: the documentation has all parts, at two sizes at least; leave --parts out, and give more --nodes`},
		{"--write --nodes 1000", `--write: the documentation has all parts, at two sizes at least; leave --parts out, and give more --nodes`},
		{"1000,5000", `"1000,5000" isn't a flag; sizes are given as --nodes=1000,5000`},
		{"--pods 3", `flag provided but not defined: -pods`},
	} {
		if _, err := parse(strings.Fields(x.args), io.Discard); err == nil || err.Error() != x.want {
			t.Errorf("%s: got %v, want %s", x.args, err, x.want)
		}
	}
}

// grown returns figures that grow by simple laws: keys ending in "pod", "one" and "idle" stay as
// they are, and all else is in proportion to the nodes.
func grown() *growth {
	g := &growth{options: &options{nodes: []int{1000, 10000}, podsPerNode: 10, classes: 1000, parts: parts}, values: map[string]map[int]float64{}}
	for _, n := range g.nodes {
		figures := map[string]float64{}
		for _, p := range parts {
			for _, f := range p.figures {
				figures[f.key] = float64(n) / 1000
				if strings.HasSuffix(f.key, "pod") || strings.HasSuffix(f.key, "one") || strings.HasSuffix(f.key, "idle") {
					figures[f.key] = 36
				}
			}
		}
		g.add(n, figures)
	}
	return g
}

// TestTable has a row for each figure, and says how large a cluster may be: the peak is 1 GiB for
// 1,000 nodes; and 1,000 nodes keep a core busy for 10,000 pods of 36 µs in an hour and a scan of
// 1 s in ten, a tenth of it.
func TestTable(t *testing.T) {
	text := grown().table()
	for _, want := range []string{
		"| | goal | 1,000 nodes, 10,000 pods | 10,000 nodes, 100,000 pods | exponent |\n|---|---|---|---|---|\n",
		"\n| **engine**: a placement, one class | exponent ≤ 0.3 | 36 µs | 36 µs | 0.00 |\n",
		"\n| **core**: all nodes and pods of 1,000 classes through Steps, until all are bound | ≤ 60 s at 100,000 nodes | 1 s | 10 s | 1.00 |\n",
		"\n| … the most memory of that process | ≤ 12 GiB at 100,000 nodes | 1 GiB | 10 GiB | 1.00 |\n",
		"**Memory.** 24 GiB are enough for 24,000 nodes with 240,000 pods",
		"**One core.** Deciding takes 50 % of a core at 4,900 nodes with 49,000 pods, if",
		"At 10,000 nodes it takes 100 %.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q isn't in\n%s", want, text)
		}
	}
	want := 0
	for _, p := range parts {
		want += len(p.figures)
	}
	if rows := strings.Count(text, "\n| "); rows != want {
		t.Errorf("got %d rows, want %d:\n%s", rows, want, text)
	}
}

// TestUnmeasuredSizes leaves out what wasn't measured, in the table, the fit and the plot.
func TestUnmeasuredSizes(t *testing.T) {
	g := grown()
	g.nodes = []int{1000, 10000, 100000}
	text := g.table()
	if want := "through Steps, until all are bound | ≤ 60 s at 100,000 nodes | 1 s | 10 s | – | 1.00 |\n"; !strings.Contains(text, want) {
		t.Errorf("%q isn't in\n%s", want, text)
	}
	if want := "At 10,000 nodes it takes 100 %."; !strings.Contains(text, want) {
		t.Errorf("%q isn't in\n%s", want, text)
	}
	if got, want := strings.Count(g.plot(), "<circle "), strings.Count(grown().plot(), "<circle "); got != want {
		t.Errorf("got %d points, want %d", got, want)
	}
}

// TestPlot has a point for each figure that it draws and each size, and nothing outside.
func TestPlot(t *testing.T) {
	text := grown().plot()
	curves := 0
	for _, p := range plots {
		curves += len(p.curves)
		for _, c := range p.curves {
			if grown().values[c.key] == nil {
				t.Errorf("nothing measures %q, which is drawn", c.key)
			}
		}
	}
	if got, want := strings.Count(text, "<circle "), 2*curves; got != want {
		t.Errorf("got %d points, want %d", got, want)
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, `="-`) {
		t.Errorf("something has no place:\n%s", text)
	}
	if text != grown().plot() {
		t.Error("equal figures give different plots")
	}
}

// TestDocument has the marks between which the table goes.
func TestDocument(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", documentFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testkit.Splice(string(document), begin, end, ""); err != nil {
		t.Error(err)
	}
}

// TestReplaceAllOrNothing leaves both files as they were when one can't be written, and no file
// beside them.
func TestReplaceAllOrNothing(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Join(folder, "a"), filepath.Join(folder, "no folder", "b")
	if err := os.WriteFile(a, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(map[string][]byte{a: []byte("new"), b: []byte("new")}); err == nil {
		t.Error("a folder that isn't there was written to")
	}
	if got := string(testkit.Must(os.ReadFile(a))); got != "old" {
		t.Errorf("the other file is %q", got)
	}
	if err := replace(map[string][]byte{a: []byte("new")}); err != nil {
		t.Error(err)
	}
	if got := string(testkit.Must(os.ReadFile(a))); got != "new" {
		t.Errorf("the file is %q", got)
	}
	if list := testkit.Must(os.ReadDir(folder)); len(list) != 1 {
		t.Errorf("there are %v, want one file", list)
	}
}

// TestTinySizes measures everything with few nodes, each part in a process of its own.
func TestTinySizes(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run(t.Context(), strings.Fields("--nodes 20,40 --pods-per-node 3 --classes 20"), &out, &progress); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if got := strings.Count(progress.String(), "\n"+p.name+", ") + strings.Count("\n"+progress.String()[:len(p.name)], "\n"+p.name); got != 2 {
			t.Errorf("%d lines of progress about %s, want 2:\n%s", got, p.name, progress.String())
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "|") && (strings.Contains(line, "| 0 µs") || strings.Contains(line, "| 0 s") || strings.Contains(line, "| 0 GiB")) {
			t.Errorf("nothing was measured: %s", line)
		}
	}
}

// TestKeptMeasurements has a second run take what the first has measured, and measure the rest.
func TestKeptMeasurements(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept")
	play := func(nodes string) (table, said string) {
		var out, progress bytes.Buffer
		if err := run(t.Context(), strings.Fields("--parts engine --pods-per-node 3 --classes 20 --keep "+file+" --nodes "+nodes), &out, &progress); err != nil {
			t.Fatal(err)
		}
		return out.String(), progress.String()
	}
	play("20")
	table, said := play("20,40")
	if !strings.Contains(said, "engine, 20 nodes, 60 pods: ") || strings.Count(said, ", as kept\n") != 1 || strings.Count(said, " s by the clock\n") != 1 {
		t.Errorf("got\n%s", said)
	}
	if again, said := play("20,40"); again != table || strings.Count(said, ", as kept\n") != 2 {
		t.Errorf("got\n%s\n%s\nwant\n%s", said, again, table)
	}
	table, said = play("20,40,80 --report")
	if !strings.Contains(said, "engine, 80 nodes: not measured yet\n") || !strings.Contains(table, " | – | ") {
		t.Errorf("got\n%s\n%s", said, table)
	}
	whole := testkit.Must(os.ReadFile(file))
	for _, bad := range []string{"{", `{"Task":{"Part":"engine"}}`, ""} {
		if err := os.WriteFile(file, append(whole, bad+"\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
		want := file + ":3: "
		if err := run(t.Context(), []string{"--keep", file}, io.Discard, io.Discard); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("after the line %q: got %v, want %s…", bad, err, want)
		}
	}
}

// TestInterrupt ends without a table.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	err := run(ctx, strings.Fields("--nodes 20,40 --pods-per-node 3 --classes 20"), &out, io.Discard)
	if err == nil || err.Error() != "interrupted; nothing is written" || out.Len() > 0 {
		t.Errorf("got %v, and %q is printed", err, out.String())
	}
}
