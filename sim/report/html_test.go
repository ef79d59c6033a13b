package report_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

func outcome(t *testing.T, path string) (*scenario.Run, *scenario.Summary, *sim.Stats) {
	t.Helper()
	runs, err := scenario.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(runs[0], sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return runs[0], s, w.Stats()
}

// browser runs headless Chromium and returns what it prints.
func browser(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("needs chromium on the PATH: %v", err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--v=0",
		"--virtual-time-budget=5000", "--window-size=1280,2600", "--user-data-dir=" + t.TempDir()}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, errs.String())
	}
	return out.String(), errs.String()
}

var address = regexp.MustCompile(`(src|href|url\()\s*=?\s*["']?(https?:)?//`)

// TestPageDrawsInABrowser opens pages of a run with everything and of one
// with nothing in Chromium, and looks at what came of it.
func TestPageDrawsInABrowser(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, []byte("apiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: \"<b>empty</b>\"}\nspec: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scenario, drawn string
		want            []string
	}{
		{"../../examples/night-batch/unlimited.yaml", `data-drawn="6"`, []string{"<h1>unlimited</h1>", "448 failed", "InstanceRemoved", "not registered within 15m0s"}},
		{empty, `data-drawn="5"`, []string{"&lt;b&gt;empty&lt;/b&gt;"}},
	} {
		run, s, stats := outcome(t, c.scenario)
		path := filepath.Join(t.TempDir(), "report.html")
		if err := report.HTML(path, run, s, stats); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if m := address.Find(raw); m != nil {
			t.Errorf("%s: the page fetches something: %s", c.scenario, m)
		}
		dom, log := browser(t, "--dump-dom", "file://"+path)
		if strings.Contains(log, "Uncaught") || strings.Contains(log, "CONSOLE") {
			t.Errorf("%s: the page's script says\n%s", c.scenario, log)
		}
		for _, want := range append(c.want, c.drawn, "<canvas") {
			if !strings.Contains(dom, want) {
				t.Errorf("%s: %q is not in the page", c.scenario, want)
			}
		}
		shot := filepath.Join(t.TempDir(), "report.png")
		browser(t, "--screenshot="+shot, "file://"+path)
		if info, err := os.Stat(shot); err != nil || info.Size() < 20_000 {
			t.Errorf("%s: the picture is %v, %v", c.scenario, info, err)
		}
	}
}

func TestCompareMarksWhatDiffers(t *testing.T) {
	_, a, _ := outcome(t, "../../examples/night-batch/baked.yaml")
	_, b, _ := outcome(t, "../../examples/night-batch/capped.yaml")
	var out bytes.Buffer
	if err := report.Compare(&out, a, b); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, l := range strings.Split(out.String(), "\n") {
		label, rest, _ := strings.Cut(l, "   ")
		lines[label] = rest
	}
	if l := lines["peak write rate"]; !strings.Contains(l, "6.02 GB/s") || !strings.Contains(l, "14 GB/s") || !strings.HasSuffix(l, "≠") {
		t.Errorf("peak write rate: %q", l)
	}
	if l := lines["budget violations"]; strings.Contains(l, "≠") {
		t.Errorf("what is equal is marked: %q", l)
	}
	out.Reset()
	if err := report.Compare(&out, a); err != nil || strings.Contains(out.String(), "≠") {
		t.Errorf("one summary alone: %v\n%s", err, out.String())
	}
}
