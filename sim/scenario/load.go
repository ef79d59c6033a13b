package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/tools/trace/openb"
)

// Run is a scenario with everything it refers to, ready to be played.
type Run struct {
	Name, Description string
	Spec              Spec
	// Objects exist at the beginning, Arrivals come later, in order of time.
	Objects  []runtime.Object
	Arrivals []Arrival
	// Notes say what was left out of the input and why.
	Notes []string
	// Scheduler and Autoscale are the policy.
	Scheduler config.Scheduler
	Autoscale core.Autoscale
}

// Arrival is something that comes to the cluster.
type Arrival struct {
	At      time.Duration
	Objects []runtime.Object
	// DeleteAfter is how long after At the objects are deleted; never when 0.
	DeleteAfter time.Duration
}

// Load reads files: scenarios, each of which becomes a run; policies, under each
// of which every scenario is run instead of its own; and manifests or dumps,
// which are added to every run. Without a scenario the manifests alone are one.
// Errors name file, line and field.
func Load(paths []string) ([]*Run, error) {
	var scenarios, policies, manifests []string
	for _, p := range paths {
		kind, err := kindOfFile(p)
		if err != nil {
			return nil, err
		}
		switch kind {
		case Kind:
			scenarios = append(scenarios, p)
		case PolicyKind:
			policies = append(policies, p)
		default:
			manifests = append(manifests, p)
		}
	}
	type given struct {
		s   *Scenario
		src source
	}
	var list []given
	for _, p := range scenarios {
		s := &Scenario{}
		src, err := read(p, s)
		if err == nil {
			err = s.validate(src)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, given{s, src})
	}
	if len(scenarios) == 0 {
		if len(manifests) == 0 {
			return nil, errors.New("there are policies only; name a scenario, a dump or a manifest too")
		}
		list = append(list, given{&Scenario{APIVersion: APIVersion, Kind: Kind}, source{path: manifests[0], dir: "."}})
	}
	var out []*Run
	for _, g := range list {
		if len(policies) == 0 {
			r, err := g.s.resolve(g.src, &g.s.Spec.Policy, "spec.policy", g.src, manifests)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		for _, p := range policies {
			f := &PolicyFile{}
			src, err := read(p, f)
			if err == nil {
				err = f.validate(src)
			}
			if err != nil {
				return nil, err
			}
			r, err := g.s.resolve(g.src, &f.Spec, "spec", src, manifests)
			if err != nil {
				return nil, err
			}
			if r.Name += " under " + f.Metadata.Name; f.Metadata.Name == "" {
				r.Name += src.name()
			}
			out = append(out, r)
		}
	}
	return out, nil
}

var fileKind = regexp.MustCompile(`(?m)^\s*"?kind"?:\s*"?(Scenario|Policy)"?\s*,?\s*(#.*)?$`)

// kindOfFile looks at the beginning of a file; "" is a dump or a manifest.
func kindOfFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, cause(err))
	}
	defer f.Close()
	head := make([]byte, 1<<16)
	n, err := f.Read(head)
	if n == 0 {
		if info, serr := f.Stat(); serr == nil && info.IsDir() {
			return "", fmt.Errorf("reading %s: it is a folder; give a file", path)
		}
		return "", fmt.Errorf("%s: the file is empty; give a scenario, a dump or a manifest (%v)", path, err)
	}
	if m := fileKind.FindSubmatch(head[:n]); m != nil && bytes.Contains(head[:n], []byte(APIVersion)) {
		return string(m[1]), nil
	}
	return "", nil
}

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

// Parse reads a scenario from text; path is for errors and relative files.
func Parse(path string, raw []byte) (*Run, error) {
	s := &Scenario{}
	src, err := parse(path, raw, s)
	if err == nil {
		err = s.validate(src)
	}
	if err != nil {
		return nil, err
	}
	return s.resolve(src, &s.Spec.Policy, "spec.policy", src, nil)
}

func read(path string, into any) (source, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return source{}, fmt.Errorf("reading %s: %w", path, cause(err))
	}
	return parse(path, raw, into)
}

func parse(path string, raw []byte, into any) (source, error) {
	src := source{path: path, dir: filepath.Dir(path)}
	var bad *badValue
	dec := yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict(), yaml.UseJSONUnmarshaler(),
		yaml.CustomUnmarshaler(func(d *metav1.Duration, b []byte) error {
			text := strings.Trim(strings.TrimSpace(string(b)), `"'`)
			v, err := time.ParseDuration(text)
			if err != nil {
				bad = &badValue{text, "is not a duration; write one such as 90s, 15m or 2h"}
				return bad
			}
			d.Duration = v
			return nil
		}),
		yaml.CustomUnmarshaler(func(q *resource.Quantity, b []byte) error {
			text := strings.Trim(strings.TrimSpace(string(b)), `"'`)
			v, err := resource.ParseQuantity(text)
			if err != nil {
				bad = &badValue{text, "is not a quantity; write one such as 500m, 4 or 8Gi"}
				return bad
			}
			*q = v
			return nil
		}))
	err := dec.Decode(into)
	src.file, _ = parser.ParseBytes(raw, 0)
	if bad != nil {
		return src, fmt.Errorf("%s:%d: %w", path, lineOf(src.file, bad.text), bad)
	}
	if err != nil {
		return src, fmt.Errorf("%s%w", path, located(err))
	}
	return src, nil
}

type badValue struct{ text, why string }

func (b *badValue) Error() string { return fmt.Sprintf("%q %s", b.text, b.why) }

// lineOf finds the first scalar with a text.
func lineOf(f *ast.File, text string) int {
	find := &finder{text: text}
	if f != nil {
		for _, d := range f.Docs {
			ast.Walk(find, d)
		}
	}
	return max(find.line, 1)
}

type finder struct {
	text string
	line int
}

func (f *finder) Visit(n ast.Node) ast.Visitor {
	if _, ok := n.(ast.ScalarNode); ok && f.line == 0 && n.GetToken().Value == f.text {
		f.line = n.GetToken().Position.Line
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

// resolve reads what the scenario refers to, and the policy, which stands in a
// field of a file.
func (s *Scenario) resolve(src source, p *Policy, field string, policySrc source, manifests []string) (*Run, error) {
	r := &Run{Name: s.Metadata.Name, Description: s.Metadata.Description, Spec: s.Spec, Scheduler: config.Default()}
	if r.Name == "" {
		r.Name = src.name()
	}
	var err error
	if p.SchedulerConfig != "" {
		if r.Scheduler, err = config.Load(policySrc.rel(p.SchedulerConfig)); err != nil {
			return nil, policySrc.errorf(field+".schedulerConfig", "%v", err)
		}
		if len(r.Scheduler.Extenders) > 0 {
			return nil, policySrc.errorf(field+".schedulerConfig", "%s has extenders, which a simulation can't call; give a file without them", p.SchedulerConfig)
		}
	}
	if r.Autoscale, err = config.ParseAutoscaler(p.Flags); err != nil {
		return nil, policySrc.errorf(field+".flags", "%v", err)
	}
	o := &objects{run: r}
	for i, raw := range s.Spec.Objects {
		if err := o.inline(raw); err != nil {
			return nil, src.errorf(fmt.Sprintf("spec.objects[%d]", i), "%v", err)
		}
	}
	for i, f := range s.Spec.Files {
		if _, err := os.Stat(src.rel(f)); err != nil {
			return nil, src.errorf(fmt.Sprintf("spec.files[%d]", i), "%s: %v", f, cause(err))
		}
		manifests = append(slices.Clip(manifests), src.rel(f))
	}
	for _, m := range manifests {
		if err := o.file(m); err != nil {
			return nil, err
		}
	}
	for i := range s.Spec.Nodes {
		if err := o.nodes(&s.Spec.Nodes[i]); err != nil {
			return nil, src.errorf(fmt.Sprintf("spec.nodes[%d]", i), "%v", err)
		}
	}
	for i := range s.Spec.Traces {
		if err := o.trace(&s.Spec.Traces[i], src); err != nil {
			return nil, src.errorf(fmt.Sprintf("spec.traces[%d].path", i), "%v", err)
		}
	}
	for i := range s.Spec.Workload {
		o.workload(&s.Spec.Workload[i], s.Spec.Seed)
	}
	if err := o.finish(); err != nil {
		return nil, err
	}
	return r, nil
}

func (o *objects) trace(t *Trace, src source) error {
	tr, err := openb.Load(src.rel(t.Path))
	if err != nil {
		return err
	}
	speed := t.Speed
	if speed == 0 {
		speed = 1
	}
	for i := range tr.Nodes {
		if err := o.add(tr.Nodes[i].Object()); err != nil {
			return err
		}
	}
	var first int64 = math.MaxInt64
	for i := range tr.Pods {
		first = min(first, tr.Pods[i].CreationTime)
	}
	for i := range tr.Pods {
		if t.Limit > 0 && i >= t.Limit {
			break
		}
		p := &tr.Pods[i]
		obj := p.Object("default")
		if p.Delete > p.CreationTime {
			setRunFor(&obj.ObjectMeta, time.Duration(float64(p.Delete-p.CreationTime)/speed*float64(time.Second)))
		}
		o.arrive(time.Duration(float64(p.CreationTime-first)/speed*float64(time.Second)), 0, obj)
	}
	return nil
}
