package mutants

import (
	"encoding/json"
	"flag"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// leastGenerated is how many of Subtle random tests must find.
const leastGenerated = 32

// TestGeneratorsAreRandom checks the table of random tests: each finds a planted fault, and is one
// that draws what it plays.
func TestGeneratorsAreRandom(t *testing.T) {
	names := map[string]bool{}
	for i := range All {
		names[All[i].Name] = true
	}
	for _, name := range Subtle {
		if !names[name] {
			t.Errorf("no fault is called %q", name)
		}
	}
	draws := regexp.MustCompile(`^(Fuzz|TestProperty|TestAnyValue)\w+$|^TestSoak$|^TestDraining$`)
	for name, g := range Generators {
		if !slices.Contains(Subtle, name) || !draws.MatchString(g.Run) {
			t.Errorf("%q is found by %s, which draws nothing, or isn't one of Subtle", name, g.Run)
		}
	}
	if len(Generators) < leastGenerated {
		t.Errorf("%d of %d faults are found by random tests, want %d", len(Generators), len(Subtle), leastGenerated)
	}
}

// TestGeneratorsFind plants the faults that random tests must find, with -planted=all.
func TestGeneratorsFind(t *testing.T) {
	if *planted != "all" {
		return // TestMutantsAreNoticed plants some
	}
	for i := range All {
		if g, ok := Generators[All[i].Name]; ok {
			t.Run(All[i].Name, func(t *testing.T) {
				isFound(t, &All[i], g.Dir, append([]string{g.Pkg, "-run", "^" + g.Run + "$", "-count=1"}, strings.Fields(g.Args)...))
			})
		}
	}
}

// root is the module's root.
var root = filepath.Join("..", "..", "..")

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
	isFound(t, m, "", []string{m.Pkg, "-run", m.Run, "-count=1"}, "RAPID_CHECKS="+m.Checks, "RAPID_SEED=1", "RAPID_NOFAILFILE=true", "RAPID_SHRINKTIME=1ms")
}

// isFound fails the test unless tests fail that run with the mutant compiled in: go test in a
// folder of the module, with args.
func isFound(t *testing.T, m *Mutant, dir string, args []string, env ...string) {
	t.Helper()
	files := t.TempDir()
	changed := filepath.Join(files, "mutant.go")
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
	list := filepath.Join(files, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{"test", "-overlay", list}, args...)...)
	cmd.Dir, cmd.Env = filepath.Join(root, dir), append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	switch output := string(out); {
	case err == nil:
		t.Errorf("no test notices: go test %s", strings.Join(args, " "))
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		t.Errorf("the mutant doesn't compile:\n%s", output)
	case !strings.Contains(output, "--- FAIL"):
		t.Errorf("no test failed, but:\n%s", output)
	}
}
