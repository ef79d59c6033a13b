package upstream

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

// metricFiles are the files in which kube-scheduler defines its metrics, by module.
var metricFiles = []struct{ module, path string }{
	{"k8s.io/kubernetes", "pkg/scheduler/metrics/metrics.go"},
	{"k8s.io/kubernetes", "pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go"},
	{"k8s.io/dynamic-resource-allocation", "resourceclaim/metrics/metrics.go"},
}

// TestMetricsOfKubeScheduler compares the list by which edge/observe tests what becomes of each metric.
// The list is read from the source: a registry doesn't tell a metric's labels, buckets and stability.
func TestMetricsOfKubeScheduler(t *testing.T) {
	var lines []string
	for _, f := range metricFiles {
		dir := moduleFolder(t, f.module)
		defined, err := metricsDefined(filepath.Join(dir, filepath.FromSlash(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, defined...)
	}
	slices.Sort(lines)
	text := "# The metrics of kube-scheduler 1.37.2, written by " + command + ": NAME TYPE STABILITY [labels=NAMES] [buckets=EXPRESSION] [deprecated=VERSION]\n" + strings.Join(lines, "\n") + "\n"
	testkit.Generated(t, filepath.Join("..", "..", "edge", "observe", "testdata", "kube-scheduler-1.37.txt"), text, command, *rewrite)
}

// moduleFolder returns where a module's source is.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding the source of %s: %v", module, err)
	}
	return strings.TrimSpace(string(dir))
}

// metricsDefined returns a line for each metric that a file defines.
func metricsDefined(path string) (out []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{} // of the file's constants
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					texts[name.Name] = textOf(n.Values[i], nil)
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "New") && len(n.Args) > 0 {
				if options, ok := optionsOf(n.Args[0], texts); ok {
					out = append(out, metricLine(f.Sel.Name, options, n.Args[1:], texts))
				}
			}
		}
		return true
	})
	return out, nil
}

// optionsOf returns the fields of &metrics.CounterOpts{…} and the like as texts.
func optionsOf(x ast.Expr, texts map[string]string) (map[string]string, bool) {
	at, ok := x.(*ast.UnaryExpr)
	if !ok {
		return nil, false
	}
	literal, ok := at.X.(*ast.CompositeLit)
	if !ok {
		return nil, false
	}
	kind, ok := literal.Type.(*ast.SelectorExpr)
	if !ok || !strings.HasSuffix(kind.Sel.Name, "Opts") {
		return nil, false
	}
	out := map[string]string{}
	for _, e := range literal.Elts {
		if field, ok := e.(*ast.KeyValueExpr); ok {
			out[textOf(field.Key, nil)] = textOf(field.Value, texts)
		}
	}
	return out, true
}

// metricLine returns the line of a metric that a function makes with options and the names of labels.
func metricLine(function string, options map[string]string, labels []ast.Expr, texts map[string]string) string {
	kind := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(function, "New"), "Vec"))
	line := fmt.Sprintf("%s_%s %s %s", options["Subsystem"], options["Name"], kind, options["StabilityLevel"])
	for _, l := range labels {
		line += " labels=" + textOf(l, texts)
	}
	if b := options["Buckets"]; b != "" {
		line += " buckets=" + b
	}
	if v := options["DeprecatedVersion"]; v != "" {
		line += " deprecated=" + v
	}
	return line
}

// textOf returns an expression without the names of packages and without quotes, constants as texts has
// them, and the elements of a list alone.
func textOf(x ast.Expr, texts map[string]string) string {
	list := func(elements []ast.Expr) string {
		var out []string
		for _, e := range elements {
			out = append(out, textOf(e, texts))
		}
		return strings.Join(out, ",")
	}
	switch x := x.(type) {
	case *ast.Ident:
		if text, ok := texts[x.Name]; ok {
			return text
		}
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.CallExpr:
		return textOf(x.Fun, nil) + "(" + list(x.Args) + ")"
	case *ast.CompositeLit:
		return list(x.Elts)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil {
			return text
		}
		return x.Value
	}
	return fmt.Sprintf("%T", x)
}
