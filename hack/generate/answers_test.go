package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// This file holds the example answers of the API, which a test there compares with what it answers, against the schema.

// answersOf are the example answers of edge/api/testdata, by the property of Answers that describes them; the stream's are in
// stream.txt.
var answersOf = map[string][]string{
	"meta": {"meta"}, "overview": {"overview"}, "money": {"money"}, "series": {"series", "series-5m"}, "nodes": {"nodes"}, "nodes/NAME": {"node-stays", "node-candidate"},
	"pods": {"pods", "pods-pending"}, "pods/NAMESPACE/NAME": {"pod-waits", "pod-placed"}, "pending": {"pending"}, "groups": {"groups"}, "groups/NAME": {"group"},
	"podgroups": {"podgroups"}, "devices": {"devices"}, "decisions": {"decisions"}, "decisions/SEQ": {"decision"}, "shadow": {"shadow"},
	"whatif": {"whatif-remove", "whatif-like"}, "error": {"error"},
}

// apiTestdata is where the example answers are.
var apiTestdata = filepath.Join(root, "edge/api/testdata")

// validate returns what the schema has against the answer of a path. Unlike the schema that is served, it is closed: a field that
// it hasn't got is an error.
func validate(t *testing.T, property string, raw []byte) error {
	t.Helper()
	file, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range schema.(map[string]any)["$defs"].(map[string]any) {
		def.(map[string]any)["additionalProperties"] = false
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat() // of times
	if err := c.AddResource("schema.json", schema); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json#/$defs/Answers/properties/" + strings.NewReplacer("/", "~1", " ", "%20").Replace(property))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.Validate(answer)
}

// TestAnswersAreAsTheSchemaHasThem: each example answer of the API, and each event of its stream.
func TestAnswersAreAsTheSchemaHasThem(t *testing.T) {
	validated := map[string]bool{}
	for _, property := range slices.Sorted(maps.Keys(answersOf)) {
		for _, name := range answersOf[property] {
			raw, err := os.ReadFile(filepath.Join(apiTestdata, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, property, raw); err != nil {
				t.Errorf("%s isn't as the schema has %s: %v", name, property, err)
			}
			validated[name+".json"] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(apiTestdata, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if !validated[filepath.Base(file)] {
			t.Errorf("no path of the schema is known for %s: add it to answersOf", file)
		}
	}
	stream, err := os.ReadFile(filepath.Join(apiTestdata, "stream.txt"))
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	of := map[string]string{"decisions": "stream: decisions", "overview": "overview", "end": "error"}
	for event := range strings.SplitSeq(strings.TrimSpace(string(stream)), "\n\n") {
		_, name, _ := strings.Cut(event, "event: ")
		name, data, _ := strings.Cut(name, "\ndata: ")
		if of[name] == "" {
			t.Errorf("no schema is known for the event %q", name)
			continue
		}
		if err := validate(t, of[name], []byte(data)); err != nil {
			t.Errorf("the event isn't as the schema has %s: %v", of[name], err)
		}
		events++
	}
	if events != 3 {
		t.Errorf("%d events were found", events)
	}
}

// TestWhatTheSchemaRefuses: answers with a field that it hasn't got, without one that must be there, and with one of another type.
func TestWhatTheSchemaRefuses(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(apiTestdata, "overview.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string]any){
		"as it is":           func(map[string]any) {},
		"an unknown field":   func(o map[string]any) { o["nodes"].(map[string]any)["more"] = 1 },
		"a missing field":    func(o map[string]any) { delete(o, "pods") },
		"another type":       func(o map[string]any) { o["pods"].(map[string]any)["placed"] = "16" },
		"a time as a number": func(o map[string]any) { o["at"] = 1767225600 },
	} {
		answer := map[string]any{}
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatal(err)
		}
		change(answer)
		changed, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if refused := validate(t, "overview", changed) != nil; refused != (name != "as it is") {
			t.Errorf("%s: refused is %t", name, refused)
		}
	}
}
