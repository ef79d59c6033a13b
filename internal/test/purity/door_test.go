package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// This file keeps one door: what was written outside is decoded by core/door, which bounds it.

// decoders are the files that decode on their own, with the reason why nothing from there needs a
// bound, or where it gets one.
var decoders = map[string]string{
	"core/autoscaler/expander/priority.go": "regular expressions of a ConfigMap that administrators write",

	"config/args.go":               "a file that administrators write; it has no amounts",
	"config/points.go":             "the same file, for the names in it",
	"config/redact.go":             "the same file, to be shown",
	"config/scheduler.go":          "the same file",
	"config/componentconfig.go":    "the same file, to be shown",
	"config/migrate/deployment.go": "a manifest that an administrator gives to a command, up to a bound in bytes; it is turned into text",
	"config/migrate/migrate.go":    "the same, and values of a chart",
	"config/nodeprices/file.go":    "a file that administrators write, up to a bound in bytes; its numbers have bounds",

	"config/nodeprices/pricelist/stream.go": "a list that an administrator gives to a command, value by value up to a bound in bytes; its numbers have bounds",

	"edge/extender/extender.go":             "names and texts, up to a bound in bytes",
	"edge/live/status_content.go":           "a status that Berth has written",
	"edge/provider/clusterapi/objects.go":   "fields without amounts; amounts are read by door.Amount",
	"edge/provider/externalgrpc/config.go":  "a file that administrators write; it has no amounts",
	"edge/provider/externalgrpc/convert.go": "protobuf, with long exponents refused before and bounded by the door after",

	"edge/provider/externalgrpc/prices.go": "protobuf, with long exponents refused before and bounded by the door after",

	"edge/observe/shadow.go": "answers of Berth, shown to a person",

	"edge/tracing/config.go": "a file that administrators write, strict and up to a bound in bytes; its number has bounds",

	"edge/reach/reach.go": "an error that Berth answers, shown to a person",

	"edge/provider/devicetemplates.go":          "strict, with door.Readable before",
	"internal/simulatedgroup/simulatedgroup.go": "strict, with door.Readable before and door.Object after",
	"sim/scenario/embedding.go":                 "parts of a pod template, with door.Readable before",
	"sim/scenario/manifest.go":                  "takes a stream of objects apart; each is read by the door",
	"sim/scenario/objects.go":                   "strict, with door.Readable before and door.Object after; and the kind of an object",
	"sim/scenario/source.go":                    "the spec of a scenario, strict; its amounts are read by door.Amount",
	"sim/scenario/summary.go":                   "a summary that a simulation has made",
	"sim/soak/shrink.go":                        "a scenario that a test has drawn",
	"sim/replay/answers.go":                     "answers of the stopwatch; they have no amounts",
	"sim/replay/objects.go":                     "a kind and a selector; the object in it is read by the door",
	"sim/replay/replay.go":                      "header and lines of a recording; the inputs in it are read by the door",

	"internal/term/output.go": "answers of Berth, shown to a person",
	"internal/term/shadow.go": "answers of Berth, shown to a person",
	"internal/term/source.go": "answers of Berth, shown to a person",
}

// TestOneDoor finds decoders that nobody has argued for, and arguments for decoders that are gone.
func TestOneDoor(t *testing.T) {
	found := map[string]bool{}
	sources(t, func(file, pkg string, _ []string) {
		if pkg == "core/door" || !slices.Contains([]string{"core", "config", "edge", "sim", "cmd", "drive", "sim/replay", "internal/simulatedgroup", "internal/term"}, part(pkg)) {
			return
		}
		if call := decodes(t, file); call != "" {
			found[file] = true
			if decoders[file] == "" {
				t.Errorf("%s calls %s: read what was written outside with door.Read, or say in decoders why it needs no bound", file, call)
			}
		}
	})
	for file := range decoders {
		if !found[file] {
			t.Errorf("%s decodes nothing any more; take it from decoders", file)
		}
	}
}

// decodes returns a call of a decoder in a file, "" when it has none.
func decodes(t *testing.T, file string) (call string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", filepath.FromSlash(file)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if f, ok := c.Fun.(*ast.SelectorExpr); ok && (strings.HasPrefix(f.Sel.Name, "Unmarshal") || f.Sel.Name == "NewDecoder") {
				call = f.Sel.Name
			}
		}
		return call == ""
	})
	return call
}
