package scenario_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/scenario"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the lists in docs/reference/scenario.md")

// TestLists keeps the generated parts of docs/reference/scenario.md.
func TestLists(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "scenario.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	faults := comments(t, "faults.go", "const")
	var f strings.Builder
	for _, kind := range scenario.FaultKinds() {
		if faults[kind] == "" {
			t.Errorf("fault %s has no comment", kind)
		}
		fmt.Fprintf(&f, "| `%s` | %s |\n", kind, faults[kind])
	}
	var m strings.Builder
	about := comments(t, "summary.go", "json")
	for _, name := range scenario.Metrics() {
		last := name[strings.LastIndex(name, ".")+1:]
		why := about[name]
		if why == "" {
			why = about[last]
		}
		if why == "" && strings.Contains(name, ".") {
			why = strings.TrimSpace(about[name[:strings.Index(name, ".")]] + ", " + last)
		}
		fmt.Fprintf(&m, "| `%s` | %s |\n", name, why)
	}
	out := string(text)
	for mark, rows := range map[string]string{"faults": f.String(), "metrics": m.String()} {
		out, err = testkit.Splice(out, "<!-- "+mark+" -->\n| | |\n|---|---|\n", "<!-- end -->", rows)
		if err != nil {
			t.Fatal(err)
		}
	}
	testkit.Generated(t, path, out, "go test ./sim/scenario -rewrite", *rewrite)
}

// comments returns the line comments of constants by name, or of fields by
// their JSON name.
func comments(t *testing.T, path, what string) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ValueSpec:
			if what == "const" && x.Comment != nil {
				out[x.Names[0].Name] = strings.TrimSpace(x.Comment.Text())
			}
		case *ast.Field:
			if what == "json" && x.Tag != nil {
				name := reflect.StructTag(strings.Trim(x.Tag.Value, "`")).Get("json")
				if x.Comment != nil {
					out[name] = strings.TrimSpace(x.Comment.Text())
				} else if x.Doc != nil {
					out[name] = strings.ReplaceAll(strings.TrimSpace(x.Doc.Text()), "\n", " ")
				}
			}
		}
		return true
	})
	return out
}
