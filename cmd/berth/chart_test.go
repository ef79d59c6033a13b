package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/internal/test/testkit"
)

// flagsOfChart are the flags that values may not have: those that name files which the chart makes,
// those of the Lease, for which it gives a right by schedulerConfiguration.leaderElection, --shadow,
// for which it has a value of its own, and what isn't for a Berth that is to run.
var flagsOfChart = []string{"kubeconfig", "config", "cloud-config", "leader-elect-resource-name", "leader-elect-resource-namespace", "shadow", "version"}

// TestChartFlags compares the flags that the chart's values may have with those of berth run:
// with a name that isn't among them Helm refuses the values.
func TestChartFlags(t *testing.T) {
	path := filepath.Join("..", "..", "deploy", "chart", "values.schema.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct { // maps are written in the order of their keys
		Schema     string                    `json:"$schema"`
		Additional bool                      `json:"additionalProperties"`
		Properties map[string]map[string]any `json:"properties"`
		Required   []string                  `json:"required"`
		Title      string                    `json:"title"`
		Type       string                    `json:"type"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&schema); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	flags := map[string]any{}
	runCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(flagsOfChart, f.Name) {
			flags[f.Name] = flagSchema(f)
		}
	})
	flags["secure-port"].(map[string]any)["minimum"] = 1 // probes need it
	schema.Properties["flags"]["properties"] = flags
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	testkit.Generated(t, path, b.String(), "go test ./cmd/berth -rewrite", *rewrite)
}

// flagSchema returns what a value of the flag may be. Whether the text of a string is a good
// one, Berth says itself when it starts.
func flagSchema(f *pflag.Flag) map[string]any {
	out := map[string]any{"description": f.Usage}
	switch kind := f.Value.Type(); kind {
	case "bool":
		out["type"] = "boolean"
	case "int", "int32", "int64", "uint64":
		out["type"] = "integer"
	case "float64":
		out["type"] = "number"
	case "string", "duration", "ip":
		out["type"] = "string"
	default: // some may be repeated, some take numbers
		out["type"], out["items"] = []string{"array", "boolean", "number", "string"}, map[string]any{"type": "string"}
	}
	return out
}
