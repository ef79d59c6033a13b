package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// This file keeps the core small enough to be read, and explanations from deciding.

// The most that core.Core may have. What doesn't fit is a package below core.
const (
	mostMethods = 110
	mostFields  = 16
	mostFiles   = 24 // of the package core, without tests
)

// TestTheCoreStaysSmall counts the methods and fields of core.Core, and the files of its package.
func TestTheCoreStaysSmall(t *testing.T) {
	files, methods, fields := 0, 0, 0
	for _, file := range parsed(t, "core") {
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && receiver(n) == "Core" {
					methods++
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Core" {
					fields = countFields(s)
				}
			}
			return true
		})
	}
	if methods == 0 || fields == 0 {
		t.Fatalf("core.Core has %d methods and %d fields; the test looks in the wrong place", methods, fields)
	}
	if methods > mostMethods || fields > mostFields || files > mostFiles {
		t.Errorf("core.Core has %d methods, %d fields and its package %d files; at most %d, %d and %d are allowed", methods, fields, files, mostMethods, mostFields, mostFiles)
	}
}

// countFields returns how many fields a struct declares; an embedded one counts as one.
func countFields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// parsed returns the files of a package that aren't tests, by their names.
func parsed(t *testing.T, pkg string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = file
	}
	if len(out) == 0 {
		t.Fatalf("%s has no files; the test looks in the wrong place", pkg)
	}
	return out
}

// decides are the packages with which something can be decided, and that explanations therefore
// don't import: they are given interfaces that only describe.
var decides = []string{"core", "core/lifecycle", "core/scheduler", "core/autoscaler/planner"}

// described are the words of a description, by the package that has it. An explanation may use
// nothing else of a package that has a machine, the queue or records.
var described = map[string][]string{
	"core/lifecycle/candidates":   {"Description"},
	"core/lifecycle/homes":        {"Kept"},
	"core/lifecycle/launching":    {"Launch", "Times", "Windows"},
	"core/lifecycle/nodedeletion": {"Description"},
	"core/lifecycle/nodegroups":   {"Asked", "Backoff", "Description", "Failure", "Instance"},
	"core/lifecycle/nodestatus":   {"Status", "Stays", "Candidate", "Leaving", "Unknown"},
	"core/lifecycle/planning":     {"State", "Unknown"},
	"core/lifecycle/podgroups":    {"Attempt", "MinCount", "PluginName", "Room"},
	"core/lifecycle/reservation":  {"Place"},
	"core/lifecycle/resizing":     {"Description"},
	"core/lifecycle/keptnodes":    {"Stay"},
	"core/queue":                  {"Group", "Item", "Unschedulable", "WaitingClass"},
	"core/record":                 {"Description"},
}

// TestExplanationsDecideNothing: core/explain can't name what could be told to do something. The
// compiler sees to the rest: what it can name has no method that decides.
func TestExplanationsDecideNothing(t *testing.T) {
	used := map[string]bool{}
	for name, file := range parsed(t, "core/explain") {
		short := map[string]string{} // the packages of the module by how the file calls them
		for _, i := range file.Imports {
			pkg, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
			if !ours {
				continue
			}
			for _, d := range decides {
				if pkg == d {
					t.Errorf("%s imports %s, which decides", name, pkg)
				}
			}
			if _, ok := described[pkg]; !ok && (within(pkg, "core/lifecycle") || pkg == "core/queue" || pkg == "core/record") {
				t.Errorf("%s imports %s: say in described which of its words only describe", name, pkg)
			}
			if i.Name != nil {
				t.Errorf("%s imports %s under another name, which this test doesn't follow", name, pkg)
			}
			short[pkg[strings.LastIndex(pkg, "/")+1:]] = pkg
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			words, ok := described[short[x.Name]]
			if !ok {
				return true
			}
			used[short[x.Name]+"."+s.Sel.Name] = true
			for _, w := range words {
				if w == s.Sel.Name {
					return true
				}
			}
			t.Errorf("%s uses %s.%s, which isn't among the words that only describe", name, x.Name, s.Sel.Name)
			return true
		})
	}
	for pkg, words := range described {
		for _, w := range words {
			if !used[pkg+"."+w] {
				t.Errorf("core/explain doesn't use %s.%s any more; take it from described", pkg, w)
			}
		}
	}
}
