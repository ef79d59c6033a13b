package report_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/lifecycle/keptnodes"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/report"
)

// TestEveryReasonHasWords prints a node that is kept for each reason that there is: people read
// words, and the reason after them.
func TestEveryReasonHasWords(t *testing.T) {
	for _, reason := range testkit.Constants(t, "../../core/autoscaler/removal.go", "KeptReason") {
		var out bytes.Buffer
		if err := report.Node(&out, &explain.NodeExplanation{Node: "n", State: explain.NodeStays, Reason: autoscaler.KeptReason(reason)}, "now"); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, "("+reason+")\n") || strings.Contains(got, "why:  (") {
			t.Errorf("a node that is kept for %s is printed as\n%s", reason, got)
		}
	}
}

// TestNodesFitOnOneScreen prints a large cluster with long names: every reason, and twenty
// groups.
func TestNodesFitOnOneScreen(t *testing.T) {
	long := strings.Repeat("a-long-name-", 10)
	at := time.Unix(1e9, 0)
	x := explain.NodesExplanation{Status: explain.ScaleDownCandidates, Planned: &at, NodesSum: explain.NodesSum{Nodes: 50000, Price: 123456.78}}
	for _, reason := range testkit.Constants(t, "../../core/autoscaler/removal.go", "KeptReason") {
		x.Reasons = append(x.Reasons, explain.NodesOfReason{State: explain.NodeStays, Reason: autoscaler.KeptReason(reason), NodesSum: explain.NodesSum{Nodes: 5000, Price: 99999.99}, Node: long, Pod: long})
	}
	for i := range 20 {
		x.Groups = append(x.Groups, explain.NodesOfGroup{Group: fmt.Sprint(long, i), NodesSum: explain.NodesSum{Nodes: 5000, Price: 99999.99}})
	}
	var out bytes.Buffer
	if err := report.Nodes(&out, &x, "2026-01-01 00:10:00"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) > 45 {
		t.Errorf("%d lines; a screen has some 45:\n%s", len(lines), out.String())
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > 150 {
			t.Errorf("a line has %d letters; a screen has some 150: %s", n, line)
		}
	}
	if !strings.Contains(out.String(), "… and 12 more groups") {
		t.Errorf("groups are left out without a word:\n%s", out.String())
	}
}

// TestEveryStepHasWords prints a node in each state of core/lifecycle/nodedeletion, as the table
// in its doc.go has them, but for those in which the node stays.
func TestEveryStepHasWords(t *testing.T) {
	text, err := os.ReadFile("../../core/lifecycle/nodedeletion/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^//\t([a-z ]*[a-z])  +(?:in|out of) the state`).FindAllStringSubmatch(string(text), -1)
	if len(steps) < 9 {
		t.Fatalf("only %d states are found in doc.go: %v", len(steps), steps)
	}
	for _, m := range steps {
		step := m[1]
		if strings.HasPrefix(step, "untaint") {
			continue
		}
		var out bytes.Buffer
		if err := report.Node(&out, &explain.NodeExplanation{Node: "n", State: explain.NodeLeaving, Leaving: &explain.Leaving{Step: step, Why: "it is empty"}}, "now"); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "how far:  (") {
			t.Errorf("a node that is %s is printed as\n%s", step, got)
		}
	}
}

// TestDocumentsHaveEveryReason: docs/why-a-node-stays.md has a row for each reason, with a star
// where the ledger has it, and one for each status.
func TestDocumentsHaveEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../docs/why-a-node-stays.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range testkit.Constants(t, "../../core/autoscaler/removal.go", "KeptReason") {
		star := ""
		if keptnodes.Noted(autoscaler.KeptReason(reason)) {
			star = " *"
		}
		if row := fmt.Sprintf("| `%s`%s |", reason, star); !strings.Contains(string(text), row) {
			t.Errorf("docs/why-a-node-stays.md has no row %s", row)
		}
	}
	for _, status := range explain.ScaleDownStatuses {
		if row := fmt.Sprintf("| `%s` |", status); !strings.Contains(string(text), row) {
			t.Errorf("docs/why-a-node-stays.md has no row %s", row)
		}
	}
}
