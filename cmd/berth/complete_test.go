package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestValuesOfFlagsAreCompleted, by what shells call, which choose among them by what is typed: those of flags that have few values, and the
// names of the kubeconfig.
func TestValuesOfFlagsAreCompleted(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: east, cluster: {server: https://127.0.0.1:1}}]\nusers: [{name: ann, user: {}}, {name: bob, user: {}}]\ncontexts: [{name: prod, context: {cluster: east, user: ann}}, {name: dev, context: {cluster: east, user: bob}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	for line, want := range map[string]string{
		"run --cloud-provider ":        "externalgrpc clusterapi simulated",
		"run --cloud-provider=":        "externalgrpc clusterapi simulated",
		"run --expander ":              "random most-pods least-waste least-nodes price priority grpc cost",
		"run --mode ":                  "scheduler autoscaler",
		"simulate --output ":           "text json html",
		"plan -o ":                     "text json",
		"plan --expanders ":            "random most-pods least-waste least-nodes price priority cost",
		"status -o ":                   "text wide json yaml go-template go-template-file template templatefile jsonpath jsonpath-as-json jsonpath-file",
		"explain nodes -o ":            "text wide name json yaml go-template go-template-file template templatefile jsonpath jsonpath-as-json jsonpath-file",
		"shadow report -o ":            "text html json yaml go-template go-template-file template templatefile jsonpath jsonpath-as-json jsonpath-file",
		"status --context ":            "dev prod",
		"top --user ":                  "ann bob",
		"dump --cluster ":              "east",
		"ui --kubeconfig none --user ": "",
		"explain ":                     "pod pods podgroup podgroups node nodes group groups",
	} {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{cobra.ShellCompRequestCmd}, strings.Split(line, " ")...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		var got []string
		for text := range strings.Lines(out.String()) {
			if strings.HasPrefix(text, ":") { // the directive ends the values
				if text != ":4\n" {
					t.Errorf("%q: the directive is %q, want that files aren't completed", line, text)
				}
				break
			}
			value, _, _ := strings.Cut(strings.TrimSpace(text), "\t")
			got = append(got, value)
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
}
