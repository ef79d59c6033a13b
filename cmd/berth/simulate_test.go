package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/sim/replay"
)

// TestSimulateSaysWhatWasStillToCome plays a workload whose pods come after the end of the
// run.
func TestSimulateSaysWhatWasStillToCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "late.yaml")
	text := `{"apiVersion": "berth.dev/v1alpha1", "kind": "Scenario", "spec": {"workload": [
		{"name": "w", "count": 3, "arrive": {"after": "49h"}, "template": {"spec": {"containers": [{"name": "c"}]}}}]}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := simulateCommand()
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs([]string{path})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "late: the run ended after 48h0m0s, before 3 pod(s) had arrived"; !strings.Contains(stderr.String(), want) {
		t.Errorf("got %q, want …%s…", stderr.String(), want)
	}
}

// TestReplayUnderAnotherVersion plays recordings by other rules than theirs, and says so.
func TestReplayUnderAnotherVersion(t *testing.T) {
	const warning = "the recording follows the rules of Kubernetes %s, and this replay those of %s"
	for _, c := range []struct {
		header, version string // "" for that of the recording
		want, err       string
	}{
		{`{"berthRecording":1}`, "", "", ""},
		{`{"berthRecording":1}`, "1.36", "", ""},
		{`{"berthRecording":1}`, "1.37", fmt.Sprintf(warning, "1.36", "1.37"), ""},
		{`{"berthRecording":1,"kubernetes":"1.99"}`, "", "", "those are 1.36 and 1.37"},
		{`{"berthRecording":1,"kubernetes":"1.99"}`, "kube=1.36", fmt.Sprintf(warning, "1.99", "1.36"), ""},
	} {
		path := filepath.Join(t.TempDir(), "recording")
		if err := os.WriteFile(path, []byte(c.header+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout bytes.Buffer
		cmd := simulateCommand()
		cmd.SetOut(&stdout)
		cmd.SetArgs([]string{"--replay", path, "--emulated-version=" + c.version, "--output=json"})
		err := cmd.ExecuteContext(t.Context())
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s under %q: %v, want %q", c.header, c.version, err, c.err)
		}
		if err != nil {
			continue
		}
		var report replay.Report
		if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Warning != c.want {
			t.Errorf("%s under %q: %v, the warning is %q, want %q", c.header, c.version, err, report.Warning, c.want)
		}
	}
}

// TestFilesFromPipes: a scenario comes to the same from standard input and from a pipe, as a process substitution makes one, as
// from its file; and what is asked about it is answered alike.
func TestFilesFromPipes(t *testing.T) {
	const file = "../../examples/explain/staying.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// fifo returns the path of a pipe that has the file in it, once. Its name is the file's, since runs are named after it.
	fifo := func() string {
		path := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Error(err)
			}
		}()
		return path
	}
	of := func(cmd *cobra.Command, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s %q: %v", cmd.Name(), args, err)
		}
		// The time that a run took isn't the file's.
		return regexp.MustCompile(`wall time +\S+`).ReplaceAllString(out.String(), "…")
	}
	in, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	os.Stdin = in
	t.Cleanup(func() { os.Stdin = stdin })
	go func() {
		_, err := write.Write(text)
		if err := errors.Join(err, write.Close()); err != nil {
			t.Error(err)
		}
	}()
	want := of(simulateCommand(), file)
	if got := of(simulateCommand(), fifo()); got != want || !strings.Contains(want, "decisions NodeStays") {
		t.Errorf("from a pipe:\n%s\nwant\n%s", got, want)
	}
	if got := strings.ReplaceAll(of(simulateCommand(), "-"), "stdin", "staying"); got != want {
		t.Errorf("from standard input:\n%s\nwant\n%s", got, want)
	}
	want = of(explainCommand(), "nodes", "--file", file)
	if got := of(explainCommand(), "nodes", "--file", fifo()); got != want || !strings.Contains(want, "not in a node group") {
		t.Errorf("nodes of a pipe:\n%s\nwant\n%s", got, want)
	}
	if got := of(simulateCommand(), fifo(), "--explain-nodes"); got != want {
		t.Errorf("nodes of a simulated pipe:\n%s\nwant\n%s", got, want)
	}
}
