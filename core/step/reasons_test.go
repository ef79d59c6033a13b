package step_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reference/events.md")

// makers are the functions that make events, with which of their arguments is the reason.
var makers = map[string]int{"PodEvent": 1, "NodeEvent": 1, "StatusEvent": 1, "SchedulingEvent": 2}

// reasonsIn adds the reasons of events that a file has, each with what makes them: those given to
// makers, and those that a literal or an assignment to an event's field Reason has.
func reasonsIn(file *ast.File, found map[string]string) {
	addOf := func(maker string, x ast.Expr) {
		if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
				found[text] = maker
			}
		}
	}
	add := func(x ast.Expr) { addOf("", x) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok {
				if i := makers[f.Sel.Name]; i > 0 && len(n.Args) > i {
					addOf(f.Sel.Name, n.Args[i])
				}
			}
		case *ast.CompositeLit:
			if f, ok := n.Type.(*ast.SelectorExpr); !ok || f.Sel.Name != "Event" {
				return true
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && fmt.Sprint(kv.Key) == "Reason" {
					add(kv.Value)
				}
			}
		case *ast.AssignStmt: // of an event that is called e, as all are
			for i, left := range n.Lhs {
				if f, ok := left.(*ast.SelectorExpr); ok && f.Sel.Name == "Reason" && fmt.Sprint(f.X) == "e" && len(n.Rhs) == len(n.Lhs) {
					add(n.Rhs[i])
				}
			}
		case *ast.ValueSpec: // constants of the expander priority, which warns with them
			for _, v := range n.Values {
				if lit, ok := v.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, `"PriorityConfigMap`) {
					add(v)
				}
			}
		}
		return true
	})
}

// TestAllReasonsOfEventsAreListed looks for them in the code of core and edge. Those that
// kube-scheduler has are from the scheduler of the pod, and no others.
func TestAllReasonsOfEventsAreListed(t *testing.T) {
	found := map[string]string{}
	for _, folder := range []string{"..", filepath.Join("..", "..", "edge")} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				reasonsIn(file, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	listed := map[string]bool{}
	for _, r := range step.EventReasons() {
		listed[r.Reason] = true
		switch maker, ok := found[r.Reason]; {
		case !ok:
			t.Errorf("no code has the reason %s, which is listed", r.Reason)
		case (maker == "SchedulingEvent") != (r.From == "the schedulerName"):
			t.Errorf("events %s are made by %q, and listed as from %s", r.Reason, maker, r.From)
		}
	}
	for reason := range found {
		if !listed[reason] {
			t.Errorf("the reason %s isn't listed; say in EventReasons what it means", reason)
		}
	}
}

// TestEventReference keeps docs/reference/events.md what the list says.
func TestEventReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Events\n\nGenerated from the code: `go test ./core/step -rewrite`. Where kube-scheduler or Cluster Autoscaler has an event, Berth uses the same reason and message. ")
	b.WriteString("Events of the status ConfigMap (`--namespace`, `--status-config-map-name`) are written in its namespace, unless `--write-status-configmap=false`; their related object is the node group or node that they concern.\n\n")
	b.WriteString("*From* is the reporting controller, by which the field selector `reportingComponent=NAME` selects events: the `schedulerName` is that of the pod's profile, and of `Preempted` that of the preempting pod.\n\n| about | type | reason | from | meaning |\n|---|---|---|---|---|\n")
	for _, r := range step.EventReasons() {
		kind := "Normal"
		if r.Warning {
			kind = "Warning"
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s |\n", r.About, kind, r.Reason, r.From, r.Meaning)
	}
	testkit.Generated(t, filepath.Join("..", "..", "docs", "reference", "events.md"), b.String(), "go test ./core/step -rewrite", *rewrite)
}
