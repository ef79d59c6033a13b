package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/internal/test/testkit"
)

// This file keeps what the pages and the help texts tell a reader to type. What plays files of the
// repository is run; what needs a cluster, or takes long, is checked by the rules of
// docs_rules_test.go and docs_gorules_test.go.

// repository is the way to the repository's root.
const repository = "../.."

// TestEveryCommandOfThePagesWorks: no page shows a command that a rule refuses, or that none knows.
func TestEveryCommandOfThePagesWorks(t *testing.T) {
	t.Chdir(repository)
	commands := 0
	for _, path := range pages(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range commandsOf(path, string(text)) {
			commands++
			if err := checkCommand(s); err != nil {
				t.Errorf("%s: %s\n    %v", s.where, s.text, err)
			}
		}
	}
	if commands < 150 {
		t.Errorf("the pages have %d commands; are they found?", commands)
	}
}

// TestPagesShowWhatIsPrinted runs every command that a page shows and that plays files of the
// repository, and compares what it prints with what the page shows of that: the lines below it, or,
// where these begin with "…", the paragraphs that begin as they do. A comment
// "<!-- printed by: COMMAND -->" above a block names the command where the page shows the question
// as it is asked of a live cluster. -rewrite writes what is printed into the pages.
func TestPagesShowWhatIsPrinted(t *testing.T) {
	t.Chdir(repository)
	paths := pages(t)
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // for the files that commands write
	if err := os.Symlink(filepath.Join(top, "examples"), "examples"); err != nil {
		t.Fatal(err)
	}
	p := printer{done: map[string]string{}}
	for _, path := range paths {
		path = filepath.Join(top, path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range commandsOf(path, string(text)) {
			if _, err := p.printed(s.text); err != nil {
				t.Errorf("%s: %s\n    %v", s.where, s.text, err)
			}
		}
		want, err := p.withOutputs(string(text))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		testkit.Generated(t, path, want, "go test ./cmd/berth -run PagesShow -rewrite", *rewrite)
	}
	if len(p.done) < 12 {
		t.Errorf("the pages show %d commands that play files; are they found?", len(p.done))
	}
}

// TestEveryCommandOfHelpAndAlertsWorks: the same of the examples in the help texts, and of what
// alerts tell people to ask.
func TestEveryCommandOfHelpAndAlertsWorks(t *testing.T) {
	t.Chdir(repository)
	examples := 0
	for _, top := range []*cobra.Command{root(), plugin()} {
		visit(top, func(cmd *cobra.Command) {
			for _, line := range strings.Split(continued.ReplaceAllString(cmd.Example, " "), "\n") {
				if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				examples++
				if err := checkCommand(shown{text: line, whole: true}); err != nil {
					t.Errorf("%s --help: %s\n    %v", cmd.CommandPath(), line, err)
				}
			}
		})
	}
	if examples < 20 {
		t.Errorf("the help texts have %d examples; are they found?", examples)
	}
	alerts, err := os.ReadFile("deploy/chart/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	told := asked.FindAllString(string(alerts), -1)
	if len(told) < 14 {
		t.Errorf("the alerts tell to run %d commands; are they found?", len(told))
	}
	for _, m := range told {
		if err := checkCommand(shown{text: m}); err != nil {
			t.Errorf("deploy/chart/files/alerts.yaml: %s\n    %v", m, err)
		}
	}
}

// continued matches the end of a line that the next one continues.
var continued = regexp.MustCompile(`\s*\\\n\s*`)

// asked matches the questions that alerts tell people to ask.
var asked = regexp.MustCompile(`kubectl berth (explain (pod|node|group|groups|nodes)( [A-Z/]+)?|status)`)

// visit calls a function with a command and all below it.
func visit(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		visit(sub, do)
	}
}

// TestScriptsTakeTheirCasesOnly: a script that chooses by its first argument takes those that it has
// a case for, and another script takes any.
func TestScriptsTakeTheirCasesOnly(t *testing.T) {
	const chooses = "#!/bin/sh\ncase $1 in\nsize) devcluster size ;; # speed\nscale)\n\tgo run ./hack/scale\n\t;;\n*)\n\texit 1\n\t;;\nesac\n"
	for arg, want := range map[string]bool{"size": true, "scale": true, "siz": false, "devcluster": false} {
		if got := scriptTakes(chooses, arg); got != want {
			t.Errorf("an argument %q is taken: %t, want %t", arg, got, want)
		}
	}
	if !scriptTakes("#!/bin/sh\ngo test -fuzztime $1\n", "10m") {
		t.Error("a script without cases takes no argument")
	}
}

// TestRulesRefuseWhatDoesNotWork has mistakes of earlier pages, and others like them.
func TestRulesRefuseWhatDoesNotWork(t *testing.T) {
	t.Chdir(repository)
	for command, want := range map[string]string{
		"berth foo":                                                  `unknown command "foo"`,
		"kubectl berth simulate x.yaml":                              `unknown command "simulate"`,
		"berth run --cloud-provder clusterapi":                       "there is no flag --cloud-provder",
		"berth run --scan-interval soon":                             "invalid argument",
		"berth explain pod":                                          "name one pod",
		"berth simulate examples/night-batch/none.yaml":              "no such file",
		"kubectl apply -k deploy/kustomize/overlays/eks":             "no such file",
		"kubectl -n kube-system logs deployment/berths":              "no manifest in deploy/kustomize has the name berths",
		"kubectl drain n1":                                           "no rule knows kubectl [drain n1]",
		"helm install berth deploy/charts":                           "no such file",
		"helm install berth deploy/chart --set shadow.enable=true":   "the chart has no value shadow.enable",
		"helm install berth deploy/chart --set flags.expandr=cost":   "the chart has no value flags.expandr",
		"helm install berth deploy/chart --set shadow.enabled=true":  "set image.repository",
		"helm install berth deploy/chart -f examples/none.yaml":      "no such file",
		"kubectl apply -f examples/none.yaml":                        "no such file",
		"scp examples/none.yaml root@HOST:":                          "no such file",
		"make no-such-target":                                        "No rule to make target",
		"make help NOTHING=1":                                        "NOTHING makes no difference",
		"go test ./cmd/berth -run TestNothingOfTheKind":              `no Test there matches "TestNothingOfTheKind"`,
		"go test ./cmd/berth -run 'PagesShow|TestNothingOfTheKind'":  `no Test there matches "TestNothingOfTheKind"`,
		"go test ./cmd/bert -run .":                                  "no such file",
		"cd devcluster && go test ./cmd/berth":                       "no such file",
		"go test ./cmd/berth -rewritten":                             "no flag -rewritten",
		"go run ./hack/nothing":                                      "no such file",
		"go run ./internal/test/svg":                                 "can't be run",
		"go run ./hack/gate -recorded":                               "no flag -recorded",
		"go run github.com/google/ko build":                          "has no version",
		"devcluster down":                                            "devcluster has no command down",
		"devcluster storm --kind leader-kill":                        "no flag --kind",
		"berth simulate examples/scale-down/recalled.yaml | sort -u": `no rule knows the program "sort"`,
		"kubectl logs $(kubectl drain n1)":                           "no rule knows kubectl [drain n1]",
	} {
		if err := checkCommand(shown{text: command, whole: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant …%s…", command, err, want)
		}
	}
}
