// Package purity holds what the linters can't say: that the core starts no goroutine,
// and which parts of the module may import which.
package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestCoreStartsNoGoroutine looks for go statements and for WaitGroup.Go in
// the packages of the core, the driver and the virtual world.
func TestCoreStartsNoGoroutine(t *testing.T) {
	files := 0
	for _, dir := range []string{"core", "drive", "sim"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: the core starts no goroutine that might outlive a call", set.Position(x.Pos()))
				case *ast.SelectorExpr:
					// core/engine/workers.go waits for those it starts.
					if x.Sel.Name == "Go" && filepath.Base(path) != "workers.go" {
						t.Errorf("%s: only core/engine/workers.go may start goroutines", set.Position(x.Pos()))
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 30 {
		t.Errorf("only %d files looked at; have the packages moved?", files)
	}
}
