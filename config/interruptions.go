package config

import (
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
)

// interruptionMarks is a pflag.Value: a list of marks, separated by commas. The first use of the flag
// replaces the default.
type interruptionMarks struct {
	target *[]autoscaler.InterruptionMark
	set    bool
}

// Set implements pflag.Value.
func (f *interruptionMarks) Set(text string) error {
	var out []autoscaler.InterruptionMark
	if f.set {
		out = *f.target
	}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		m, err := autoscaler.ParseInterruptionMark(part)
		if err != nil {
			return err
		}
		out = append(out, m)
	}
	*f.target, f.set = out, true
	return nil
}

// String implements pflag.Value.
func (f *interruptionMarks) String() string {
	var out []string
	for _, m := range *f.target {
		out = append(out, m.String())
	}
	return strings.Join(out, ", ") // with spaces, at which help texts are wrapped
}

// Type implements pflag.Value.
func (*interruptionMarks) Type() string { return "marks" }
