package mutants

import (
	"encoding/json"
	"flag"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var planted = flag.String("planted", "some", "which faults to compile in: some, or all, which takes half an hour")

// some are the faults that every run of the tests plants: one for a script, one for a property.
// The others cost a minute of compiling and running each three or four.
var some = []string{"nodes on their way out count for the cluster's minimum", "a value of a topology stays when its last node goes"}

// TestPlantsTakeRoot: the text that each fault replaces is there, and what replaces it is Go.
func TestPlantsTakeRoot(t *testing.T) {
	names := map[string]bool{}
	for i := range All {
		m := &All[i]
		if names[m.Name] {
			t.Errorf("two faults are called %q", m.Name)
		}
		names[m.Name] = true
		if _, err := parser.ParseFile(token.NewFileSet(), m.File, plant(t, m), parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	for _, name := range some {
		if !names[name] {
			t.Errorf("no fault is called %q", name)
		}
	}
}

// TestMutantsAreNoticed compiles faults in with an overlay, so that no file is touched.
//
// The properties' seed is fixed: whether a fault is noticed must not change from run to run.
// Whoever changes what is drawn may have to raise a mutant's checks; a property stops at its
// first failure, so that many checks cost time only when nothing is found.
func TestMutantsAreNoticed(t *testing.T) {
	if *planted != "some" && *planted != "all" {
		t.Fatalf("-planted is %q; it must be some or all", *planted)
	}
	for i := range All {
		m := &All[i]
		if *planted == "all" || slices.Contains(some, m.Name) {
			t.Run(m.Name, func(t *testing.T) { isNoticed(t, m) })
		}
	}
}

// root is the module's root.
var root = filepath.Join("..", "..")

// plant returns the text of a mutant's file with the fault in it.
func plant(t *testing.T, m *Mutant) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	from, to, err := m.At(text)
	if err != nil {
		t.Fatal(err)
	}
	return text[:from] + m.New + text[to:]
}

// isNoticed fails the test unless the mutant's tests fail.
func isNoticed(t *testing.T, m *Mutant) {
	dir := t.TempDir()
	changed := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(changed, []byte(plant(t, m)), 0o600); err != nil {
		t.Fatal(err)
	}
	original, err := filepath.Abs(filepath.Join(root, m.File))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-overlay", list, m.Pkg, "-run", m.Run, "-count=1", "-rapid.checks="+m.Checks, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	switch output := string(out); {
	case err == nil:
		t.Errorf("no test of %s -run %s notices", m.Pkg, m.Run)
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		t.Errorf("the mutant doesn't compile:\n%s", output)
	case !strings.Contains(output, "--- FAIL"):
		t.Errorf("no test failed, but:\n%s", output)
	}
}
