package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/sim/trace/openb"
)

// This file reads the text of scenarios and policies: what kind a file is of,
// strict decoding, and errors that name file, line and field. Manifests and
// dumps, which may be large, are read by manifest.go.

// typed is what says of which kind an object is.
type typed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// ours says whether the object is a scenario or a policy, which may have a
// mistake in its version. Other projects have a kind Policy too.
func (t typed) ours() bool {
	group, _, grouped := strings.Cut(t.APIVersion, "/")
	return (t.Kind == Kind || t.Kind == PolicyKind) && (!grouped || group == "berth.dev")
}

// standsAlone is what a scenario or policy among other objects is refused with:
// one of them would be passed over.
func (t typed) standsAlone() error {
	return fmt.Errorf("a %s must be alone in its file; put other objects in another file, or under spec.objects of a scenario", t.Kind)
}

var mentionsKind = regexp.MustCompile(`["']?kind["']?\s*:\s*["']?(Scenario|Policy)\b`)

// kindOfFile returns Kind or PolicyKind when the file's first object is of that
// kind, and "" for a dump or a manifest. Only a file that mentions one of the two
// is parsed: a dump may be large.
func kindOfFile(path string) (string, error) {
	if isTrace(path) {
		return "", nil
	}
	raw, err := readFile(path)
	if err != nil {
		return "", err
	}
	mentioned := mentionsKind.FindSubmatch(raw)
	if mentioned == nil {
		return "", nil
	}
	var first typed
	switch err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096).Decode(&first); {
	case err != nil:
		return string(mentioned[1]), nil // whoever reads it says what is wrong, and where
	case first.ours():
		return first.Kind, nil
	}
	return "", nil
}

// isTrace reports whether a path is the folder of an openb trace, which is added like a
// manifest.
func isTrace(path string) bool {
	info, err := os.Stat(filepath.Join(path, openb.PodFile))
	return err == nil && !info.IsDir()
}

// readFile reads a file that has something in it.
func readFile(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if info, serr := os.Stat(path); serr == nil && info.IsDir() {
		return nil, fmt.Errorf("reading %s: it is a directory without %s; give a file, or the directory of an openb trace", path, openb.PodFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, cause(err))
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, fmt.Errorf("%s: the file is empty; give a scenario, a dump or a manifest", path)
	}
	return raw, nil
}

// cause returns an error of the file system without the path, which messages name first.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// source is where a scenario stands, to name lines.
type source struct {
	path, dir string
	kind      string
	file      *ast.File
}

// at returns "path:line: field", with the line of the field, or of the nearest
// one around it when it isn't there.
func (s source) at(field string) string {
	for near := field; s.file != nil && near != ""; near = near[:max(strings.LastIndexAny(near, ".["), 0)] {
		p, err := yaml.PathString("$." + near)
		if err != nil {
			continue
		}
		if n, err := p.FilterFile(s.file); err == nil && n != nil && n.GetToken() != nil {
			return fmt.Sprintf("%s:%d: %s", s.path, n.GetToken().Position.Line, field)
		}
	}
	return s.path + ": " + field
}

func (s source) errorf(field, format string, args ...any) error {
	return fmt.Errorf("%s: %s", s.at(field), fmt.Sprintf(format, args...))
}

// rel returns a path that the file names relative to its own folder.
func (s source) rel(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}

// name is the file's, without folder and ending.
func (s source) name() string {
	return strings.TrimSuffix(filepath.Base(s.path), filepath.Ext(s.path))
}

// read parses a file.
func read(path string, into any) (source, error) {
	raw, err := readFile(path)
	if err != nil {
		return source{}, err
	}
	return parse(path, raw, into)
}

// parse decodes a scenario or a policy, strictly: an unknown field is an error.
func parse(path string, raw []byte, into any) (source, error) {
	src := source{path: path, dir: filepath.Dir(path), kind: Kind}
	if _, ok := into.(*PolicyFile); ok {
		src.kind = PolicyKind
	}
	src.file, _ = parser.ParseBytes(raw, 0) // the decoder says what is wrong
	if tag := firstTag(src.file); tag != nil {
		return src, fmt.Errorf("%s:%d: %q is a YAML tag, which a %s does not support; remove it, or quote it if it is a value", path, tag.Position.Line, strings.TrimSpace(tag.Value), src.kind)
	}
	if n := expanded(src.file); n > maxExpanded {
		return src, fmt.Errorf("%s: its aliases (*name) expand to more than %d values; nest fewer aliases", path, maxExpanded)
	}
	var bad *badValue
	dec := yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict(), yaml.UseJSONUnmarshaler(),
		yaml.CustomUnmarshaler(func(d *metav1.Duration, b []byte) error {
			text := strings.Trim(strings.TrimSpace(string(b)), `"'`)
			v, err := time.ParseDuration(text)
			if err != nil {
				bad = &badValue{text, "is not a duration; it must be one such as 90s, 15m or 2h"}
				return bad
			}
			d.Duration = v
			return nil
		}),
		yaml.CustomUnmarshaler(func(q *resource.Quantity, b []byte) error {
			text := strings.Trim(strings.TrimSpace(string(b)), `"'`)
			v, err := door.Amount(text)
			if err != nil {
				bad = &badValue{text, "is not a quantity; it must be one such as 500m, 4 or 8Gi"}
				return bad
			}
			*q = v
			return nil
		}))
	err := dec.Decode(into)
	if bad != nil {
		return src, fmt.Errorf("%s:%d: %w", path, lineOf(src.file, bad.text), bad)
	}
	if err != nil {
		return src, fmt.Errorf("%s%w", path, located(err))
	}
	return src, src.single()
}

// single refuses a file that has something behind the scenario or policy.
func (s source) single() error {
	for i, d := range s.file.Docs {
		if _, empty := d.Body.(*ast.CommentGroupNode); i > 0 && d.Body != nil && !empty {
			return fmt.Errorf("%s:%d: %w", s.path, d.Body.GetToken().Position.Line, typed{Kind: s.kind}.standsAlone())
		}
	}
	return nil
}

// badValue is a value that isn't a duration or a quantity. The library reports where it
// stands without the value, so the line is found by its text.
type badValue struct{ text, why string }

func (b *badValue) Error() string { return fmt.Sprintf("%q %s", b.text, b.why) }

// lineOf finds the first scalar with a text.
func lineOf(f *ast.File, text string) int {
	t := first(f, func(n ast.Node) bool {
		_, scalar := n.(ast.ScalarNode)
		return scalar && n.GetToken().Value == text
	})
	if t == nil {
		return 1
	}
	return t.Position.Line
}

// firstTag returns the first tag ("!x") of a file, nil when it has none. The library's decoder
// panics on a tagged scalar in the place of a list.
func firstTag(f *ast.File) *token.Token {
	return first(f, func(n ast.Node) bool { _, tag := n.(*ast.TagNode); return tag })
}

// maxExpanded is how many values the aliases of a file may stand for. The library's decoder reads
// what an alias stands for anew each time, and nine aliases of nine aliases, eight times over, are
// more than memory holds.
const maxExpanded = 1_000_000

// expanded returns how many values the aliases of a file stand for, values of aliases in aliases
// included; maxExpanded+1 for more.
func expanded(f *ast.File) int {
	if f == nil {
		return 0
	}
	all := &expansion{anchors: map[string]int{}}
	for _, d := range f.Docs {
		ast.Walk(all, d)
	}
	return all.aliased
}

// expansion counts values. An alias comes behind its anchor.
type expansion struct {
	anchors         map[string]int // how many values an anchor's is
	values, aliased int            // of those, aliased stand behind aliases
}

// Visit implements ast.Visitor.
func (e *expansion) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode:
		inner := &expansion{anchors: e.anchors}
		ast.Walk(inner, n.Value)
		e.anchors[n.Name.String()] = inner.values
		e.add(inner.values, inner.aliased)
		return nil
	case *ast.AliasNode:
		e.add(e.anchors[n.Value.String()], e.anchors[n.Value.String()])
		return nil
	}
	e.add(1, 0)
	return e
}

func (e *expansion) add(values, aliased int) {
	e.values, e.aliased = min(e.values+values, maxExpanded+1), min(e.aliased+aliased, maxExpanded+1)
}

// first returns the token of the first node that is wanted; nil without one, and without a file.
func first(f *ast.File, wanted func(ast.Node) bool) *token.Token {
	if f == nil {
		return nil
	}
	find := &finder{wanted: wanted}
	for _, d := range f.Docs {
		ast.Walk(find, d)
	}
	return find.found
}

type finder struct {
	wanted func(ast.Node) bool // of nil, too: the body of an empty document
	found  *token.Token
}

// Visit implements ast.Visitor. It doesn't go below what is found: a tag's value may be missing.
func (f *finder) Visit(n ast.Node) ast.Visitor {
	if f.found == nil && f.wanted(n) {
		f.found = n.GetToken()
	}
	if f.found != nil {
		return nil
	}
	return f
}

// located turns the library's "[4:3] text" and its excerpt into ":4: text".
func located(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	var line, column int
	if n, _ := fmt.Sscanf(text, "[%d:%d]", &line, &column); n == 2 {
		_, rest, _ := strings.Cut(text, "] ")
		return fmt.Errorf(":%d: %s", line, rest)
	}
	return errors.New(": " + text)
}
