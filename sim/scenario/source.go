package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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

// typed is the part of an object that names its kind.
type typed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// ours reports whether the object is a scenario or a policy, which may have a
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
	raw, err := ReadFile(path)
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

// Stdin is the path of standard input.
const Stdin = "-"

// piped has what was read of standard input and of pipes, by path: they can be read once, and are read by several.
var piped sync.Map

// IsPipe reports whether a path can be read only once: standard input, or a pipe such as that of a process
// substitution.
func IsPipe(path string) bool {
	if path == Stdin {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice|os.ModeSocket) != 0
}

// ReadFile reads a file that has something in it; of a pipe it returns the same again.
func ReadFile(path string) ([]byte, error) {
	read := os.ReadFile
	if IsPipe(path) {
		if raw, known := piped.Load(path); known {
			return raw.([]byte), nil
		}
		if path == Stdin {
			read = func(string) ([]byte, error) { return io.ReadAll(os.Stdin) }
		}
	}
	raw, err := read(path)
	if info, serr := os.Stat(path); serr == nil && info.IsDir() {
		return nil, fmt.Errorf("reading %s: it is a directory without %s; give a file, or the directory of an openb trace", path, openb.PodFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, cause(err))
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, fmt.Errorf("%s: the file is empty; give a scenario, a dump or a manifest", path)
	}
	if IsPipe(path) {
		piped.Store(path, raw)
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

// line returns the line of a field, or of the nearest one around it when it isn't there; 0 when the
// file isn't a tree.
func (s source) line(field string) int {
	for near := field; s.file != nil && near != ""; near = near[:max(strings.LastIndexAny(near, ".["), 0)] {
		p, err := yaml.PathString("$." + near)
		if err != nil {
			continue
		}
		if n, err := p.FilterFile(s.file); err == nil && n != nil && n.GetToken() != nil {
			return n.GetToken().Position.Line
		}
	}
	return 0
}

// errorAt returns an error that names file, line and field; without a line when it is 0.
func (s source) errorAt(line int, field, format string, args ...any) error {
	place := s.path
	if line > 0 {
		place = fmt.Sprintf("%s:%d", s.path, line)
	}
	return fmt.Errorf("%s: %s: %s", place, field, fmt.Sprintf(format, args...))
}

// errorf returns an error about a field: with the file and, where it can be found, the line.
func (s source) errorf(field, format string, args ...any) error {
	return s.errorAt(s.line(field), field, format, args...)
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
	if s.path == Stdin {
		return "stdin"
	}
	return strings.TrimSuffix(filepath.Base(s.path), filepath.Ext(s.path))
}

// read parses a file.
func read(path string, into any) (*validator, error) {
	raw, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, raw, into)
}

// parse decodes a scenario or a policy. The validator has what is wrong with single fields; an error
// is of a file that isn't decoded.
func parse(path string, raw []byte, into any) (*validator, error) {
	src := source{path: path, dir: filepath.Dir(path), kind: Kind}
	if IsPipe(path) {
		src.dir = "." // of the command: a pipe has no folder
	}
	if _, ok := into.(*PolicyFile); ok {
		src.kind = PolicyKind
	}
	src.file, _ = parser.ParseBytes(raw, 0) // the decoder says what is wrong
	if tag := firstTag(src.file); tag != nil {
		return nil, fmt.Errorf("%s:%d: %q is a YAML tag, which a %s does not support; remove it, or quote it if it is a value", path, tag.Position.Line, strings.TrimSpace(tag.Value), src.kind)
	}
	if n := expanded(src.file); n > maxExpanded {
		return nil, fmt.Errorf("%s: its aliases (*name) expand to more than %d values; nest fewer aliases", path, maxExpanded)
	}
	wrong := &validator{src: src}
	(&decodable{wrong, map[string]ast.Node{}}).file(src.file, into)
	options := []yaml.DecodeOption{yaml.UseJSONUnmarshaler(), yaml.CustomUnmarshaler(wrong.decodeDuration), yaml.CustomUnmarshaler(wrong.decodeQuantity)}
	options = append(options, wrong.embedding()...)
	if len(wrong.wrong) == 0 {
		options = append(options, yaml.Strict()) // for unknown fields that decodable doesn't get to
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw), options...)
	if err := dec.Decode(into); err != nil {
		return nil, errors.Join(fmt.Errorf("%s%w", path, src.located(err)), wrong.err())
	}
	return wrong, src.single()
}

// decodeDuration decodes a duration. One that is none has been reported with its line and stands
// for 0, so that the rest of the file is checked, too.
func (v *validator) decodeDuration(d *metav1.Duration, b []byte) (err error) {
	if d.Duration, err = time.ParseDuration(strings.Trim(strings.TrimSpace(string(b)), `"'`)); err != nil && len(v.wrong) == 0 {
		return fmt.Errorf("%q %s", b, notADuration)
	}
	return nil
}

// decodeQuantity does the same for a quantity, with 1, which is allowed wherever one is.
func (v *validator) decodeQuantity(q *resource.Quantity, b []byte) (err error) {
	if *q, err = door.Amount(strings.Trim(strings.TrimSpace(string(b)), `"'`)); err != nil {
		if len(v.wrong) == 0 {
			return fmt.Errorf("%q %s", b, notAQuantity)
		}
		*q = resource.MustParse("1")
	}
	return nil
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

// add counts values, and how many of these come from aliases. It stops counting just above the limit, so
// that a few lines of nested aliases can't overflow the counters.
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

// located turns the library's "[4:3] text" and its excerpt into ":4: text", and what it says of Go's types into the
// field and what it must be.
func (s source) located(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	var line, column int
	if n, _ := fmt.Sscanf(text, "[%d:%d]", &line, &column); n != 2 {
		return errors.New(": " + text)
	}
	_, rest, _ := strings.Cut(text, "] ")
	if m := wrongType.FindStringSubmatch(rest); m != nil {
		if field := s.fieldAt(line, column); field != "" {
			return fmt.Errorf(":%d: %s: it is %s; it must be %s", line, field, inWords(m[1]), inWords(m[2]))
		}
	}
	return fmt.Errorf(":%d: %s", line, rest)
}

// wrongType is what the library says of a value of another type than its field.
var wrongType = regexp.MustCompile(`^cannot unmarshal (\S+) into Go (?:struct field \S+|value) of type (\S+)$`)

// inWords returns a Go type as people know it from YAML.
func inWords(goType string) string {
	switch goType = strings.TrimLeft(goType, "*"); {
	case goType == "string":
		return "a string"
	case goType == "bool":
		return "true or false"
	case strings.Contains(goType, "int"), strings.HasPrefix(goType, "float"):
		return "a number"
	case strings.HasPrefix(goType, "["):
		return "a list"
	}
	return "an object with fields"
}

// fieldAt returns the field whose value is at a place, "" for none.
func (s source) fieldAt(line, column int) (field string) {
	first(s.file, func(n ast.Node) bool {
		if n == nil || n.GetToken() == nil || n.GetToken().Position.Line != line || n.GetToken().Position.Column != column {
			return false
		}
		field = strings.TrimPrefix(n.GetPath(), "$.")
		return true
	})
	return field
}
