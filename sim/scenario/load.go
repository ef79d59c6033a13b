package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
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
	"github.com/berthproject/berth/trace/openb"
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

// Load reads files: scenarios, each of which becomes a run, and manifests or
// dumps, which are added to every run. Without a scenario the manifests alone
// are one. Errors name file, line and field.
func Load(paths []string) ([]*Run, error) {
	var scenarios, manifests []string
	for _, p := range paths {
		is, err := isScenario(p)
		if err != nil {
			return nil, err
		}
		if is {
			scenarios = append(scenarios, p)
		} else {
			manifests = append(manifests, p)
		}
	}
	if len(scenarios) == 0 {
		s := &Scenario{APIVersion: APIVersion, Kind: Kind}
		r, err := s.resolve(source{path: manifests[0], dir: "."}, manifests)
		if err != nil {
			return nil, err
		}
		return []*Run{r}, nil
	}
	var out []*Run
	for _, p := range scenarios {
		s, src, err := read(p)
		if err != nil {
			return nil, err
		}
		r, err := s.resolve(src, manifests)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

var scenarioKind = regexp.MustCompile(`(?m)^\s*"?kind"?:\s*"?Scenario"?\s*,?\s*(#.*)?$`)

func isScenario(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", path, cause(err))
	}
	defer f.Close()
	head := make([]byte, 1<<16)
	n, err := f.Read(head)
	if n == 0 {
		if info, serr := f.Stat(); serr == nil && info.IsDir() {
			return false, fmt.Errorf("reading %s: it is a folder; give a file", path)
		}
		return false, fmt.Errorf("%s: the file is empty; give a scenario, a dump or a manifest (%v)", path, err)
	}
	return scenarioKind.Match(head[:n]), nil
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

// Parse reads a scenario from text; path is for errors and relative files.
func Parse(path string, raw []byte) (*Run, error) {
	s, src, err := parse(path, raw)
	if err != nil {
		return nil, err
	}
	return s.resolve(src, nil)
}

func read(path string) (*Scenario, source, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, source{}, fmt.Errorf("reading %s: %w", path, cause(err))
	}
	return parse(path, raw)
}

func parse(path string, raw []byte) (*Scenario, source, error) {
	src := source{path: path, dir: filepath.Dir(path)}
	s := &Scenario{}
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
	err := dec.Decode(s)
	src.file, _ = parser.ParseBytes(raw, 0)
	if bad != nil {
		return nil, src, fmt.Errorf("%s:%d: %w", path, lineOf(src.file, bad.text), bad)
	}
	if err != nil {
		return nil, src, fmt.Errorf("%s%w", path, located(err))
	}
	return s, src, s.validate(src)
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

// resolve reads what the scenario refers to.
func (s *Scenario) resolve(src source, manifests []string) (*Run, error) {
	r := &Run{Name: s.Metadata.Name, Description: s.Metadata.Description, Spec: s.Spec, Scheduler: config.Default()}
	if r.Name == "" {
		r.Name = strings.TrimSuffix(filepath.Base(src.path), filepath.Ext(src.path))
	}
	var err error
	if p := s.Spec.Policy.SchedulerConfig; p != "" {
		if r.Scheduler, err = config.Load(src.rel(p)); err != nil {
			return nil, src.errorf("spec.policy.schedulerConfig", "%v", err)
		}
	}
	if r.Autoscale, err = config.ParseAutoscaler(s.Spec.Policy.Flags); err != nil {
		return nil, src.errorf("spec.policy.flags", "%v", err)
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
		manifests = append(manifests, src.rel(f))
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
