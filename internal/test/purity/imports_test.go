package purity

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// This file holds the imports of the module's packages to the architecture: parts of the
// module, layers of the core, rules and edges.

const module = "github.com/berthproject/berth/"

// allowed lists the parts of the module that each part may import, besides its own
// packages. A part is a folder at the root, or one below it that has a rule of its own. Imports
// point downwards:
//
//	cmd, hack   the program, and what helps the people who change it
//	edge  sim   what touches a world: the real one, a virtual or a recorded one
//	config      files and flags
//	drive       the loop that they share
//	core        pure
//
// edge and sim don't import each other. The virtual world imports of the recorded one only the
// checker, which verifies its placements, and the traces that scenarios may name.
var allowed = map[string][]string{
	"core":   {},
	"drive":  {"core"},
	"config": {"core"},
	"edge":   {"config", "drive", "core", "ui", "internal/background", "internal/simulateddevices", "internal/simulatedgroup", "internal/version"},
	// The web page, embedded.
	"ui":         {},
	"sim":        {"config", "drive", "core", "sim/checker", "sim/trace", "internal/seeded", "internal/simulateddevices", "internal/simulatedgroup", "internal/simulatedresizes"},
	"sim/replay": {"config", "drive", "core"},
	// The checker shares no code with what it checks.
	"sim/checker": {},
	"sim/trace":   {},
	"cmd":         {"config", "edge", "sim", "sim/replay", "core", "internal/background", "internal/dump", "internal/page", "internal/simulatedgroup", "internal/term", "internal/top", "internal/version"},
	// What people see of a running Berth.
	"internal/term": {"edge", "sim", "core"},
	"internal/top":  {"edge", "internal/page", "internal/term"},
	"internal/dump": {"edge", "core", "internal/term"},
	"internal/page": {"edge", "ui", "sim", "sim/replay", "drive", "core", "internal/term", "internal/version"},
	"hack":          {"sim", "sim/trace", "edge", "drive", "core", "internal/test/gate", "internal/test/mutants", "internal/test/openbmix", "internal/test/svg", "internal/test/testkit"},
	// Files for those who deploy Berth, embedded.
	"deploy":                 {},
	"internal/seeded":        {},
	"internal/test/gate":     {"internal/test/svg"},
	"internal/test/mutants":  {},
	"internal/test/openbmix": {"core", "sim/trace"},
	"internal/test/svg":      {},
	// The file VERSION, embedded.
	".":                         {},
	"internal/version":          {"."},
	"internal/background":       {},
	"internal/simulateddevices": {},
	"internal/simulatedresizes": {},
	"internal/simulatedgroup":   {"core"},
	// For tests and for the dev cluster.
	"internal/test/devpki": {},
	"internal/test/peers":  {"internal/test/devpki"},
	// For tests, also those of the core: hence nothing above the core.
	"internal/test/testkit":       {"core"},
	"internal/test/lifecycletest": {"core"},
}

// layers are the packages of the core, each with those below it, from the bottom up.
// A layer may import those before it.
var layers = []string{
	"core/compat",
	"core/autoscalingapi",
	"core/devices",
	"core/cluster",
	"core/weighing",
	"core/framework",
	"core/engine",
	"core/queue",
	"core/autoscaler", // requests and plans
	"core/autoscaler/nodebudget",
	"core/autoscaler/nodegroup",
	"core/step",
	"core/door",
	"core/scheduler",
	"core/autoscaler/mix",
	"core/autoscaler/expander",
	"core/autoscaler/scaleup",
	"core/autoscaler/scaledown",
	"core/autoscaler/planner",
	"core/lifecycle",
	"core/record",
	"core/explain",
	"core",
}

// Plugins are rules. They import the contract and what is below it, and no package of the
// core imports them: profiles bring them in.
const (
	plugins  = "core/plugins"
	contract = "core/framework"
)

// sources calls f for each file of the module that isn't a test, with its package's
// path in the module and the packages of the module that it imports.
func sources(t *testing.T, f func(file, pkg string, imports []string)) {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || isModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, i := range file.Imports {
			if imported, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`)+"/", module); ours {
				imports = append(imports, path.Clean(imported))
			}
		}
		f(rel, path.Dir(rel), imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isModule reports whether a folder has a module of its own, as devcluster has.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// part returns which part of the module a package belongs to: of those in allowed that it is
// within, the one with the longest path; its first folder if there is none.
func part(pkg string) string {
	best, _, _ := strings.Cut(pkg, "/")
	for p := range allowed {
		if within(pkg, p) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// within reports whether a package is another one, or below it.
func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// TestImportsPointDownwards checks the imports of every part against allowed, and that every
// permission is used.
func TestImportsPointDownwards(t *testing.T) {
	used := map[string]map[string]bool{}
	sources(t, func(file, pkg string, imports []string) {
		from := part(pkg)
		permitted, ok := allowed[from]
		if !ok {
			t.Errorf("%s: no rule says what %s may import; add one", file, from)
			return
		}
		for _, imported := range imports {
			to := part(imported)
			if to == from {
				continue
			}
			if used[from] == nil {
				used[from] = map[string]bool{}
			}
			used[from][to] = true
			if !slices.Contains(permitted, to) {
				t.Errorf("%s imports %s: %s may import %v only", file, imported, from, permitted)
			}
		}
	})
	// A permission without a use would let a later import in unseen.
	for _, from := range slices.Sorted(maps.Keys(allowed)) {
		for _, to := range allowed[from] {
			if !used[from][to] {
				t.Errorf("%s may import %s and doesn't; take the permission away", from, to)
			}
		}
	}
}

// layer returns the index of a package's layer: of those that it is within, the one with the
// longest path; -1 when there is none.
func layer(pkg string) int {
	best := -1
	for i, l := range layers {
		if within(pkg, l) && (best < 0 || len(l) > len(layers[best])) {
			best = i
		}
	}
	return best
}

// TestTheCoresLayersImportDownwards checks the imports of the core's packages against
// layers.
func TestTheCoresLayersImportDownwards(t *testing.T) {
	sources(t, func(file, pkg string, imports []string) {
		for _, imported := range imports {
			switch {
			case !within(pkg, "core"):
			case within(pkg, plugins):
				if !within(imported, plugins) && layer(imported) > layer(contract) {
					t.Errorf("%s imports %s: a rule stands on %s and what is below it", file, imported, contract)
				}
			case within(imported, plugins):
				t.Errorf("%s imports %s: the core is given its rules in profiles", file, imported)
			case layer(imported) > layer(pkg):
				t.Errorf("%s imports %s, a layer above", file, imported)
			}
		}
	})
}

// TestEdgesTakeDecisionsAndHaveNoRules: the edge does what a Ready says, and the driver is
// given profiles. Neither may look behind the core.
func TestEdgesTakeDecisionsAndHaveNoRules(t *testing.T) {
	sources(t, func(file, pkg string, imports []string) {
		for _, imported := range imports {
			for _, inner := range []string{plugins, "core/scheduler", "core/queue", "core/lifecycle"} {
				if (within(pkg, "edge") || within(pkg, "drive")) && within(imported, inner) {
					t.Errorf("%s imports %s", file, imported)
				}
			}
		}
	})
}
