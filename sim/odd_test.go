package sim_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/scenario"
)

// every is by how many values each value of the examples is replaced, all of OddValues when 0.
// All take half an hour.
var every = flag.Int("odd", 1, "by how many odd values each value of the examples is replaced; 0 for all")

// sample is of how many odd examples one is tried with -short.
const sample = 7

// TestAnyValueOfAnExampleMayBeOdd replaces each value of each small example by odd ones: the
// example is refused, or it is played with its invariants checked.
func TestAnyValueOfAnExampleMayBeOdd(t *testing.T) {
	texts := []string{dumpWith("1"), scenarioWith("1")}
	for _, raw := range smallExamples(t, 6<<10) {
		texts = append(texts, string(raw))
	}
	path := filepath.Join(t.TempDir(), "example.yaml")
	made, tried, played, want := 0, 0, 0, 2000
	if testing.Short() {
		want /= sample
	}
	for _, text := range texts {
		var documents []any
		for part := range strings.SplitSeq(text, "\n---\n") {
			var document any
			if err := yaml.Unmarshal([]byte(part), &document); err != nil {
				t.Fatal(err)
			}
			documents = append(documents, document)
		}
		play := func() {
			if made++; testing.Short() && made%sample != 0 {
				return
			}
			var all strings.Builder
			for _, document := range documents {
				raw, err := json.Marshal(document)
				if err == nil {
					raw, err = yaml.JSONToYAML(raw)
				}
				if err != nil {
					t.Fatal(err)
				}
				all.WriteString("---\n" + string(raw))
			}
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("a panic: %v\n%s\n%s", p, debug.Stack(), all.String())
				}
			}()
			if err := os.WriteFile(path, []byte(strings.TrimPrefix(all.String(), "---\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			tried++
			runs, err := scenario.Load([]string{path})
			if err != nil {
				return
			}
			played++
			for _, r := range runs {
				playBriefly(t, r)
			}
		}
		testkit.Oddly(documents, *every, play)
	}
	if played < tried/20 || tried < want {
		t.Errorf("%d examples were tried, %d played; want more", tried, played)
	}
	t.Logf("%d tried, %d played", tried, played)
}
