package term

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/sim/report"
)

// hostile answers as the API of the example cluster, where every name and message has what a terminal would obey. Names
// of fields and words of the API stay as they are.
type hostile struct{ t *testing.T }

// injected stands in every text: it clears the screen, goes to the next line, and turns the order of letters around.
const injected = "\x1b[2J\u009b1m\nfake\u202e"

// Get implements Source.
func (h hostile) Get(_ context.Context, path string) ([]byte, error) {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, api.Prefix), "?")
	files := map[string]string{"overview": "overview", "meta": "meta", "nodes": "nodes", "groups": "groups", "pods": "pods-pending", "pending": "pending", "money": "money",
		"nodes/db-0001": "node-stays", "groups/spot": "group", "pods/team-b/huge-0": "pod-waits"}
	raw, err := os.ReadFile(filepath.Join("..", "..", "edge", "api", "testdata", files[path]+".json"))
	if err != nil {
		return nil, fmt.Errorf("%s not found", path)
	}
	var answer any
	if err := json.Unmarshal(raw, &answer); err != nil {
		h.t.Fatal(err)
	}
	return json.Marshal(inject(answer, ""))
}

// spoiled are the fields of free text, and those with names.
var spoiled = regexp.MustCompile(`^(name|namespace|message|detail|text|why|node|group|pod|example|zone|limit|reasons|owner|.*Error)$`)

func inject(x any, field string) any {
	switch x := x.(type) {
	case map[string]any:
		for k := range x {
			x[k] = inject(x[k], k)
		}
	case []any:
		for i := range x {
			x[i] = inject(x[i], field)
		}
	case string:
		if spoiled.MatchString(field) {
			return x + injected
		}
	}
	return x
}

// TestNoControlCharacters: whatever names and messages are, a terminal is sent text alone, and nothing stands on a line
// that an attacker began.
func TestNoControlCharacters(t *testing.T) {
	namespace := func() (string, error) { return "default", nil }
	for name, print := range map[string]func(*bytes.Buffer) error{
		"status": func(out *bytes.Buffer) error {
			s, err := ReadStatus(t.Context(), hostile{t})
			if err != nil {
				return err
			}
			nodes, _, err := AllNodes(t.Context(), hostile{t})
			if err != nil {
				return err
			}
			return PrintStatus(out, s, nodes, "berth")
		},
		"explain pod":    explaining(t, namespace, Text, "pod", "team-b/huge-0"),
		"explain node":   explaining(t, namespace, Text, "node", "db-0001"),
		"explain group":  explaining(t, namespace, Text, "group", "spot"),
		"explain pods":   explaining(t, namespace, Text, "pods"),
		"explain nodes":  explaining(t, namespace, Text, "nodes"),
		"explain groups": explaining(t, namespace, Text, "groups"),
		"wide nodes":     explaining(t, namespace, Wide, "nodes"),
		"wide pods":      explaining(t, namespace, Wide, "pods"),
		"names":          explaining(t, namespace, Name, "nodes"),
	} {
		var out bytes.Buffer
		if err := print(&out); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := out.String()
		if i := strings.IndexFunc(text, func(r rune) bool { return report.Unprintable(r) && r != '\n' }); i >= 0 {
			t.Errorf("%s writes %q", name, text[max(0, i-30):min(len(text), i+30)])
		}
		if strings.Contains(text, "\nfake") {
			t.Errorf("%s lets a message begin a line:\n%s", name, text)
		}
		if !strings.Contains(text, `\x1b[2J`) {
			t.Errorf("%s doesn't show what was in the names:\n%s", name, text)
		}
	}
}

// explaining returns what prints an explanation.
func explaining(t *testing.T, namespace func() (string, error), format string, args ...string) func(*bytes.Buffer) error {
	return func(out *bytes.Buffer) error {
		topic, err := TopicOf("berth", args, namespace)
		if err != nil {
			return err
		}
		o := NewOutput(Text, Wide, Name)
		o.format = format
		return topic.Explain(t.Context(), out, hostile{t}, o)
	}
}

// TestDecode: texts come out printable and are otherwise what they were, however the JSON writes them.
func TestDecode(t *testing.T) {
	for raw, want := range map[string]string{
		`"web-0"`:                             "web-0",
		"\n\t\"a \\\"quoted\\\" \\\\n word\"": `a "quoted" \n word`,
		`"one\ntwo\tthree"`:                   "one two three",
		`"\u001b[2J\u009b"`:                   `\x1b[2J\u009b`,
		"\"\u009b\u202e\x7f\"":                `\u009b\u202e\x7f`,
		`"\\u001b"`:                           `\u001b`,
		`"\u00e9 \ud83d\ude00 é 😀 <\u003c"`:   "é 😀 é 😀 <<",
	} {
		var got string
		if err := Decode([]byte(raw), &got); err != nil || got != want {
			t.Errorf("%s is read as %q (%v), want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{`"\u00`, `"\`, `"\uzzzz"`, `"\`, "\"\n\"", ""} {
		var got string
		if err := Decode([]byte(raw), &got); err == nil {
			t.Errorf("%q is read as %q", raw, got)
		}
	}
}
