package scenario_test

import (
	"encoding/json"
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

	"github.com/invopop/jsonschema"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/scenario"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reference/scenario.schema.json and the lists in scenario.md")

const reference = "../../docs/reference"

// TestSchema keeps docs/reference/scenario.schema.json what the code says.
func TestSchema(t *testing.T) {
	r := &jsonschema.Reflector{Anonymous: true, Mapper: func(t reflect.Type) *jsonschema.Schema {
		switch t {
		case reflect.TypeFor[metav1.Duration]():
			return &jsonschema.Schema{Type: "string", Description: "A duration such as 90s, 15m or 2h.", Pattern: `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`}
		case reflect.TypeFor[resource.Quantity]():
			return &jsonschema.Schema{Description: "A Kubernetes quantity such as 500m, 4 or 8Gi.", OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}}}
		case reflect.TypeFor[v1.PodTemplateSpec]():
			return &jsonschema.Schema{Type: "object", Description: "A Kubernetes PodTemplateSpec."}
		case reflect.TypeFor[v1.Taint]():
			return &jsonschema.Schema{Type: "object", Description: "A Kubernetes Taint."}
		case reflect.TypeFor[v1.ContainerImage]():
			return &jsonschema.Schema{Type: "object", Description: "A Kubernetes ContainerImage."}
		}
		return nil
	}}
	for _, dir := range []string{"sim/scenario", "internal/simulatedgroup"} {
		if err := r.AddGoComments("github.com/berthproject/berth/"+dir, filepath.Join("..", "..", dir)); err != nil {
			t.Fatal(err)
		}
	}
	// The comments are found under the folder that they were read from.
	for key, text := range r.CommentMap {
		if _, rest, ok := strings.Cut(key, "../../"); ok {
			r.CommentMap["github.com/berthproject/berth/"+rest] = text
		}
	}
	s := r.Reflect(&scenario.Scenario{})
	s.Title = "Scenario of berth simulate"
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "scenario.schema.json", append(raw, '\n'))
	if n := strings.Count(string(raw), `"description"`); n < 60 {
		t.Errorf("only %d fields are described", n)
	}
}

// TestLists keeps the generated parts of docs/reference/scenario.md.
func TestLists(t *testing.T) {
	path := filepath.Join(reference, "scenario.md")
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
	same(t, "scenario.md", []byte(out))
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

func same(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join(reference, name)
	testkit.Generated(t, path, string(want), "go test ./sim/scenario -rewrite", *rewrite)
}
