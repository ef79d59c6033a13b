// Package purity tests what no linter can be told: that the core starts no goroutine,
// which parts of the module may import which, and that the source stays short and commented. It reads the source.
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

// TestCoreStartsNoGoroutine finds go statements and calls of WaitGroup.Go in the core, the
// driver and the virtual world. The engine's workers are the exception: the call that starts
// them waits for them.
func TestCoreStartsNoGoroutine(t *testing.T) {
	files := 0
	for _, dir := range []string{"core", "drive", "sim"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", dir), func(path string, d fs.DirEntry, err error) error {
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
		t.Errorf("only %d files found; have the packages moved?", files)
	}
}
