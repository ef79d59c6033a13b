package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/internal/simulateddevices"
)

// This file reads files with templates of devices (--node-device-templates): which devices drivers will publish on
// new nodes of a node group (dynamic resource allocation). They are for groups that have no node to show them.

// What a file of device templates says that it is.
const (
	templatesAPIVersion = "berth.dev/v1alpha1"
	templatesKind       = "NodeDeviceTemplates"
)

// maxTemplates is how many bytes a file may have: room for a thousand groups with a dozen kinds of devices each,
// and little enough to be read at once.
const maxTemplates = 4 << 20

// templatesFile is what a file has.
type templatesFile struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Templates  []deviceTemplate `json:"templates"`
}

// deviceTemplate is the devices of new nodes of some groups.
type deviceTemplate struct {
	// NodeGroups are the IDs of the groups, as berth explain group shows them.
	NodeGroups []string `json:"nodeGroups"`
	// Devices of each node, as scenarios describe them.
	Devices []simulateddevices.Devices `json:"devices"`
}

// deviceTemplates are the devices of new nodes, by node group. Nil has none.
type deviceTemplates struct {
	byGroup map[string][]resourcev1.ResourceSlice
}

// of returns the slices that drivers will publish on a new node of a group, without the node's name; nil
// if nothing is said of the group. Nobody changes them.
func (t *deviceTemplates) of(group string) []resourcev1.ResourceSlice {
	if t == nil {
		return nil
	}
	return t.byGroup[group]
}

// groups returns of how many groups there are templates.
func (t *deviceTemplates) groups() int { return len(t.byGroup) }

// readTemplates returns the text of a file. It reads no more than a file may have.
func readTemplates(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading device templates: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	raw, err := io.ReadAll(io.LimitReader(f, maxTemplates+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading device templates: %w", err)
	case len(raw) > maxTemplates:
		return nil, fmt.Errorf("device templates in %s: the file has more than %d bytes; keep the templates of groups that may be empty", path, maxTemplates)
	}
	return raw, nil
}

// parseTemplates reads the text of a file; path names it in errors. The error joins all that is wrong, one a line:
// the field, its value and what would be accepted.
func parseTemplates(path string, raw []byte) (*deviceTemplates, error) {
	var in templatesFile
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, fmt.Errorf("device templates in %s: the file is empty; it must have apiVersion %s, kind %s and templates", path, templatesAPIVersion, templatesKind)
	}
	if err := decodeTemplates(raw, &in); err != nil {
		return nil, fmt.Errorf("device templates in %s: %w", path, err)
	}
	if in.APIVersion != templatesAPIVersion || in.Kind != templatesKind {
		return nil, fmt.Errorf("device templates in %s: apiVersion is %q and kind %q; they must be %q and %q", path, in.APIVersion, in.Kind, templatesAPIVersion, templatesKind)
	}
	out, errs := in.templates()
	if len(errs) > 0 {
		return nil, fmt.Errorf("device templates in %s:\n%w", path, errors.Join(errs...))
	}
	return out, nil
}

// decodeTemplates reads the text of a file as scenarios are read: YAML or JSON, with quantities and durations as
// Kubernetes writes them. An error names a field that isn't known, or is there twice, with its path.
func decodeTemplates(raw []byte, in *templatesFile) error {
	text, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(door.Readable(text, in), in)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

// templates returns what the file says, and all that is wrong with it. A template with errors counts for
// no group: half a description of a node's devices would have nodes bought that pods don't fit on.
func (f *templatesFile) templates() (*deviceTemplates, []error) {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s %s", field, fmt.Sprintf(format, args...)))
	}
	if len(f.Templates) == 0 {
		bad("templates", "is empty; give at least one with nodeGroups and devices")
	}
	out := &deviceTemplates{map[string][]resourcev1.ResourceSlice{}}
	for i := range f.Templates {
		t, at := &f.Templates[i], fmt.Sprintf("templates[%d]", i)
		if len(t.NodeGroups) == 0 {
			bad(at+".nodeGroups", "is empty; give the IDs of node groups")
		}
		if len(t.Devices) == 0 {
			bad(at+".devices", "is empty; give the devices of each node")
		}
		before := len(errs)
		simulateddevices.Validate(t.Devices, at+".devices", bad)
		for k, group := range t.NodeGroups {
			field := fmt.Sprintf("%s.nodeGroups[%d]", at, k)
			switch _, twice := out.byGroup[group]; {
			case group == "":
				bad(field, "is empty; give the ID of a node group")
			case twice:
				bad(field, "is %q, of which there is a template already; put all of its devices into one", group)
			case len(errs) == before:
				out.byGroup[group] = simulateddevices.Template(t.Devices)
			}
		}
	}
	return out, errs
}
