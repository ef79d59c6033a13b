// Package upstream checks the lists that Berth keeps of kube-scheduler's command line and metrics
// against kube-scheduler itself.
package upstream

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/test/testkit"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the lists in config/ and edge/observe/testdata/")

const command = "go test ./upstream -rewrite in devcluster"

var configFolder = filepath.Join("..", "..", "config")

// linked returns what go list says of k8s.io/kubernetes in the build list of this module.
func linked(t *testing.T, field string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{."+field+"}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatalf("finding the source of kube-scheduler: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// TestFlagsOfKubeScheduler compares the list by which cmd/berth says what becomes of each flag.
func TestFlagsOfKubeScheduler(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "# kube-scheduler %s, written by %s: NAME TYPE DEFAULT\n", strings.TrimPrefix(linked(t, "Version"), "v"), command)
	app.NewSchedulerCommand().Flags().VisitAll(func(f *pflag.Flag) {
		fmt.Fprintf(&b, "%s %s %s\n", f.Name, f.Value.Type(), strings.ReplaceAll(f.DefValue, "\n", " "))
	})
	testkit.Generated(t, filepath.Join(configFolder, "testdata", "upstream", "kube-scheduler.txt"), b.String(), command, *rewrite)
}

// TestFeatureGates compares the list by which --feature-gates is judged: that of the version that this
// module links. A module that links another version writes that version's list with the same test.
func TestFeatureGates(t *testing.T) {
	release := strings.TrimPrefix(linked(t, "Version"), "v") // 1.37.2
	version, err := compat.Parse(release)
	if err != nil {
		t.Fatalf("this module links a kube-scheduler that Berth doesn't follow: %v", err)
	}
	read := readByScheduler(t)
	if len(read) < 30 {
		t.Fatalf("the scheduler reads %d gates only: %v", len(read), read)
	}
	app.NewSchedulerCommand() // it adds gates
	gates := utilfeature.DefaultMutableFeatureGate.GetAll()
	var names []string
	for name := range gates {
		if name != "AllAlpha" && name != "AllBeta" {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "# The feature gates of kube-scheduler %s, written by %s: NAME DEFAULT [locked] [read]\n", release, command)
	for _, name := range names {
		spec := gates[featuregate.Feature(name)]
		fmt.Fprintf(&b, "%s %t", name, spec.Default)
		if spec.LockToDefault {
			b.WriteString(" locked")
		}
		if slices.Contains(read, name) {
			b.WriteString(" read")
		}
		b.WriteString("\n")
	}
	testkit.Generated(t, filepath.Join(configFolder, fmt.Sprintf("featuregates1%d.txt", version)), b.String(), command, *rewrite)
	for _, name := range read {
		if _, ok := gates[featuregate.Feature(name)]; !ok {
			t.Errorf("the scheduler's code reads %s, and there is no such gate", name)
		}
	}
}

// readByScheduler returns the gates that the code of kube-scheduler names, without its tests.
func readByScheduler(t *testing.T) (out []string) {
	t.Helper()
	dir := linked(t, "Dir")
	gate := regexp.MustCompile(`\b(?:kube)?features\.([A-Z]\w+)`)
	for _, folder := range []string{"pkg/scheduler", "cmd/kube-scheduler/app"} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			for _, m := range gate.FindAllSubmatch(raw, -1) {
				name := string(m[1])
				if name != "Name" && name != "New" && name != "AddFeatureGates" && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
