package testkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// Constants returns the values of all string constants of a type in a Go file, in the file's
// order, so that a test can ask for something of each, also of those that come later.
func Constants(t testing.TB, path, typeName string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != typeName {
			return true
		}
		for _, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok {
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatalf("%s: %s: %v", path, lit.Value, err)
				}
				values = append(values, s)
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constant of type %s", path, typeName)
	}
	return values
}
