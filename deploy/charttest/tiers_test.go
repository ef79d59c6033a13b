package charttest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRenderedTestsRunForEveryChange: the list rendered of hack/tiers names each test of this package that needs neither a
// cluster nor the image, and no other. A test that is missing there would run in the nights alone.
func TestRenderedTestsRunForEveryChange(t *testing.T) {
	paths, err := filepath.Glob("*_test.go")
	must(t, err)
	calls := callsOf(t, paths)
	needsMore := map[string]bool{"startCluster": true, "imageOf": true}
	for grows := true; grows; { // until no further function reaches one that does
		grows = false
		for name, called := range calls {
			if !needsMore[name] && slices.ContainsFunc(called, func(c string) bool { return needsMore[c] }) {
				needsMore[name], grows = true, true
			}
		}
	}
	var want []string
	for name := range calls {
		if strings.HasPrefix(name, "Test") && name != "TestMain" && !needsMore[name] {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	got := stringsIn(t, filepath.Join(root, "..", "hack", "tiers", "stages.go"), "rendered")
	slices.Sort(got)
	if !needsMore["TestInstall"] || len(want) < 20 {
		t.Fatalf("the tests that need neither are said to be %q", want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rendered in hack/tiers/stages.go has\n%q\nwant\n%q", got, want)
	}
}

// callsOf returns the functions and methods of files with the names of all that each calls. Methods of one name are one:
// a test that calls any of them counts as calling all.
func callsOf(t *testing.T, paths []string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			out[f.Name.Name] = append(out[f.Name.Name], "")
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					switch called := call.Fun.(type) {
					case *ast.Ident:
						out[f.Name.Name] = append(out[f.Name.Name], called.Name)
					case *ast.SelectorExpr:
						out[f.Name.Name] = append(out[f.Name.Name], called.Sel.Name)
					}
				}
				return true
			})
		}
	}
	return out
}

// stringsIn returns the strings of a list of a Go file.
func stringsIn(t *testing.T, path, list string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	must(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || v.Names[0].Name != list {
			return true
		}
		ast.Inspect(v, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				must(t, err)
				out = append(out, text)
			}
			return true
		})
		return false
	})
	return out
}
