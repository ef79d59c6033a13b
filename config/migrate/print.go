package migrate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// number is a number as it was written.
func number(text string) any { return json.Number(text) }

// Print writes the values, below comments that say what becomes of each setting.
func Print(out io.Writer, r *Result) error {
	var b strings.Builder
	b.WriteString("# Values of Berth's chart for the Cluster Autoscaler")
	if r.From != "" {
		b.WriteString(" of " + r.From)
	}
	b.WriteString(".\n")
	for _, fate := range fates {
		first := true
		for _, l := range r.Lines {
			if l.Fate != fate {
				continue
			}
			if first {
				fmt.Fprintf(&b, "#\n# %s:\n", fate)
			}
			first = false
			b.WriteString("#   " + oneLine(l.Setting))
			if l.Why != "" {
				b.WriteString(": " + oneLine(l.Why))
			}
			b.WriteString("\n")
		}
	}
	raw, err := yaml.Marshal(r.Values)
	if err != nil {
		return err
	}
	b.WriteString("\n")
	b.Write(raw)
	_, err = io.WriteString(out, b.String())
	return err
}

// oneLine keeps a text within a comment.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
