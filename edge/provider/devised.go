package provider

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// Devised is a provider whose groups have the devices of a file (--node-device-templates). Of each driver that
// the file has for a group it counts more than what the provider declares. The file is read again before
// each reading of the groups: one that can't be read, or has mistakes, leaves the devices as they are.
type Devised struct {
	nodegroup.Provider
	path string
	log  *slog.Logger

	mu        sync.Mutex // guards what follows
	text      []byte     // when the file was last read
	templates *deviceTemplates
	failed    string // why the file couldn't be used, "" when it could
}

// DevicesFile is a file of --node-device-templates that was read at the start.
type DevicesFile struct {
	path      string
	text      []byte
	templates *deviceTemplates
}

// LoadDevices reads the file of --node-device-templates; nil without one. An error names the file.
func LoadDevices(path string) (*DevicesFile, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readTemplates(path)
	if err != nil {
		return nil, fmt.Errorf("--node-device-templates: %w", err)
	}
	templates, err := parseTemplates(path, text)
	if err != nil {
		return nil, fmt.Errorf("--node-device-templates: %w", err)
	}
	return &DevicesFile{path, text, templates}, nil
}

// Devise returns a provider with the devices of a file; the same provider for nil.
func Devise(p nodegroup.Provider, file *DevicesFile, log *slog.Logger) nodegroup.Provider {
	if file == nil {
		return p
	}
	log.Info("device templates", "file", file.path, "groups", file.templates.groups())
	return &Devised{Provider: p, path: file.path, log: log, text: file.text, templates: file.templates}
}

// Groups implements nodegroup.Provider.
func (d *Devised) Groups(ctx context.Context) ([]nodegroup.Group, error) {
	groups, err := d.Provider.Groups(ctx)
	if err != nil {
		return nil, err
	}
	templates := d.current()
	groups = slices.Clone(groups) // the provider may keep its own
	for i := range groups {
		groups[i].Devices = merged(groups[i].Devices, templates.of(groups[i].ID))
	}
	return groups, nil
}

// merged returns slices that are declared with others, which count more: of their drivers they have all.
func merged(declared, more []resourcev1.ResourceSlice) []resourcev1.ResourceSlice {
	if len(more) == 0 {
		return declared
	}
	out := slices.DeleteFunc(slices.Clone(declared), func(s resourcev1.ResourceSlice) bool {
		return slices.ContainsFunc(more, func(x resourcev1.ResourceSlice) bool { return x.Spec.Driver == s.Spec.Driver })
	})
	return append(out, more...)
}

// current returns the templates of the file as it is now. What is wrong with it is said once.
func (d *Devised) current() *deviceTemplates {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, err := readTemplates(d.path)
	if err == nil && bytes.Equal(text, d.text) && d.failed == "" {
		return d.templates
	}
	var templates *deviceTemplates
	if err == nil {
		templates, err = parseTemplates(d.path, text)
	}
	if err != nil {
		if why := err.Error(); why != d.failed {
			d.failed = why
			d.log.Warn("the device templates were changed and can't be used; the old ones hold", "file", d.path, "err", why)
		}
		return d.templates
	}
	d.text, d.templates, d.failed = text, templates, ""
	d.log.Info("device templates reloaded", "file", d.path, "groups", templates.groups())
	return templates
}
