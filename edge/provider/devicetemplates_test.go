package provider

import (
	"strings"
	"testing"

	"github.com/berthproject/berth/core/devices"
)

const templatesHead = "apiVersion: berth.dev/v1alpha1\nkind: NodeDeviceTemplates\n"

// TestTemplatesAreThoseOfTheirGroups reads a file with two templates.
func TestTemplatesAreThoseOfTheirGroups(t *testing.T) {
	got, err := parseTemplates("f", []byte(templatesHead+`templates:
- nodeGroups: [a, b]
  devices:
  - {driver: gpu.example.com, name: gpu, count: 8, attributes: {model: {string: a100}}, counters: {memory: 80Gi}, partitions: [{name: half, count: 2, counters: {memory: 40Gi}}]}
- nodeGroups: [c]
  devices:
  - {driver: gpu.example.com, count: 2}
  - {driver: nic.example.com, count: 3, pool: nics}
`))
	if err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]map[string]int{"a": {"gpu.example.com": 8}, "b": {"gpu.example.com": 8}, "c": {"gpu.example.com": 2, "nic.example.com": 3}} {
		for _, d := range devices.NewTemplate(got.of(group)).Drivers {
			if d.Devices != want[d.Driver] {
				t.Errorf("group %s has %d devices of %s, want %d", group, d.Devices, d.Driver, want[d.Driver])
			}
			delete(want, d.Driver)
		}
		if len(want) > 0 {
			t.Errorf("group %s lacks %v", group, want)
		}
	}
	if got.of("d") != nil || got.groups() != 3 {
		t.Errorf("there are templates of %d groups, want 3", got.groups())
	}
}

// TestMistakesAreNamed: the field, its value and what would be accepted, all of them.
func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "the file is empty; it must have apiVersion berth.dev/v1alpha1, kind NodeDeviceTemplates and templates",
		"apiVersion: v1":                  `apiVersion is "v1" and kind ""; they must be "berth.dev/v1alpha1" and "NodeDeviceTemplates"`,
		templatesHead:                     "templates is empty; give at least one with nodeGroups and devices",
		templatesHead + "template: []":    `unknown field "template"`,
		templatesHead + "templates: [{}]": "templates[0].nodeGroups is empty; give the IDs of node groups\ntemplates[0].devices is empty; give the devices of each node",
		templatesHead + "templates: [{nodeGroups: [''], devices: [{driver: GPU, count: -1}]}]": "templates[0].devices[0].driver is \"GPU\"; it must be a DNS name of at most 63 characters, such as gpu.example.com\n" +
			"templates[0].devices[0].count is -1; it must not be negative\ntemplates[0].nodeGroups[0] is empty; give the ID of a node group",
		templatesHead + "templates: [{nodeGroups: [a, a], devices: [{driver: gpu}]}]":             `templates[0].nodeGroups[1] is "a", of which there is a template already; put all of its devices into one`,
		templatesHead + "templates: [{nodeGroups: [a], devices: [{driver: gpu, devices: 8}]}]":    `unknown field "templates[0].devices[0].devices"`,
		templatesHead + "templates: [{nodeGroups: [a], nodeGroups: [b], devices: [{driver: g}]}]": `key "nodeGroups" already set in map`,
	} {
		_, err := parseTemplates("FILE", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "device templates in FILE:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
