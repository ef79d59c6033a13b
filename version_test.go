package berth_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth"
)

// This file holds everything that names Berth's version to the file VERSION.

// TestVersionIsAVersion of semantic versioning, without what only development builds have.
func TestVersionIsAVersion(t *testing.T) {
	if v := berth.Version(); !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`).MatchString(v) {
		t.Errorf("VERSION has %q, want MAJOR.MINOR.PATCH", v)
	}
}

// TestChartHasTheVersion as its own version and as that of the image that it installs.
func TestChartHasTheVersion(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("deploy", "chart", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		t.Fatal(err)
	}
	if v := berth.Version(); chart.Version != v || chart.AppVersion != v {
		t.Errorf("deploy/chart/Chart.yaml has the version %q and the appVersion %q, want %q as VERSION says", chart.Version, chart.AppVersion, v)
	}
}

// named matches where a text names the version of Berth, of its image or of its chart.
var named = regexp.MustCompile(`(?:image\.tag=|berthproject/berth(?::|@)|registry\.example\.com/berth:|berth\.local/berth:|VERSION=|app\.kubernetes\.io/version: |berth version |berth --version |^berth )"?(v?\d+\.\d+\.\d+[-+.\w]*)`)

// TestDocumentsNameTheVersion: README, docs and kustomizations name no other version of Berth than the
// next release. Only the changelog has older ones.
func TestDocumentsNameTheVersion(t *testing.T) {
	found := 0
	for _, root := range []string{"README.md", "CONTRIBUTING.md", "docs", "deploy", "examples"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" && filepath.Ext(path) != ".yaml" {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for n, line := range strings.Split(string(raw), "\n") {
				for _, m := range named.FindAllStringSubmatch(line, -1) {
					found++
					if m[1] != berth.Version() {
						t.Errorf("%s:%d: %q names the version %s, want %s as VERSION says", path, n+1, strings.TrimSpace(line), m[1], berth.Version())
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 5 {
		t.Errorf("the documents name the version %d times: the test doesn't find where", found)
	}
}

// TestMakeStampsTheVersion: what make release and make image give the linker is VERSION, or a
// development build before it; the image's tag, which can't have a "+", is that with a "-".
func TestMakeStampsTheVersion(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), filepath.Join("hack", "version")).CombinedOutput()
	stamped := regexp.MustCompile(`^` + regexp.QuoteMeta(berth.Version()) + `(-dev(\+[0-9a-f]{7,}(\.dirty)?)?)?\n$`)
	if err != nil || !stamped.Match(out) {
		t.Errorf("hack/version prints %q (%v), want what matches %s", out, err, stamped)
	}
	dry := exec.CommandContext(t.Context(), "make", "--dry-run", "image", "VERSION=1.2.3-dev+0123456.dirty")
	if out, err = dry.CombinedOutput(); err != nil || !strings.Contains(string(out), "VERSION=1.2.3-dev+0123456.dirty ") || !strings.Contains(string(out), "--tags '1.2.3-dev-0123456.dirty'") {
		t.Errorf("make image would run (%v)\n%s", err, out)
	}
	dry = exec.CommandContext(t.Context(), "make", "--dry-run", "release", "VERSION=1.2.3")
	if out, err = dry.CombinedOutput(); err != nil || !strings.Contains(string(out), "internal/version.release=1.2.3'") {
		t.Errorf("make release would run (%v)\n%s", err, out)
	}
}
