package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file has a rule for each program that a page may tell its reader to start. A rule returns
// why the command would not work, as far as that can be known without a cluster; the current folder
// is the repository's root. A program without a rule is an error.

// rules returns the rule of each program.
func rules() map[string]func(c call, whole bool) error {
	return map[string]func(call, bool) error{
		"berth":                     func(c call, whole bool) error { return ruleOfCommand(root(), c.args[1:], whole) },
		"bin/berth":                 func(c call, whole bool) error { return ruleOfCommand(root(), c.args[1:], whole) },
		"kubectl":                   ruleOfKubectl,
		"helm":                      ruleOfHelm,
		"make":                      ruleOfMake,
		"go":                        ruleOfGo,
		"devcluster":                ruleOfDevcluster,
		"devcluster/bin/devcluster": ruleOfDevcluster,
		"hack/build-apiserver":      ruleOfFile,
		"jq":                        nothingToCheck,
		"cut":                       nothingToCheck,
		"install":                   nothingToCheck,
		"ln":                        nothingToCheck,
		"git":                       nothingToCheck,
		"kind":                      nothingToCheck,
		"docker":                    nothingToCheck,
		"scp":                       ruleOfCopies,
		"ssh":                       nothingToCheck,
	}
}

// nothingToCheck is the rule of programs that aren't ours and get no file of ours.
func nothingToCheck(call, bool) error { return nil }

// ruleOfFile is the rule of scripts of ours that take what they are given: they must be there.
func ruleOfFile(c call, _ bool) error {
	_, err := os.Stat(c.args[0])
	return err
}

// ruleOfCopies is the rule of programs that copy files: those of the repository must be there.
func ruleOfCopies(c call, _ bool) error {
	for _, arg := range c.args[1:] {
		if strings.HasPrefix(arg, "examples/") {
			if _, err := os.Stat(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCommand returns why a command of a page would not work.
func checkCommand(s shown) error {
	calls, err := callsOf(s.text)
	if err != nil {
		return err
	}
	for _, c := range calls {
		rule := rules()[strings.TrimPrefix(c.args[0], "./")]
		if rule == nil {
			return fmt.Errorf("no rule knows the program %q", c.args[0])
		}
		if err := rule(c, s.whole); err != nil {
			return err
		}
	}
	return nil
}

// ruleOfCommand checks arguments of one of our own programs: its commands, their flags with their
// values, files that are to be in the repository, and how many arguments there are.
func ruleOfCommand(root *cobra.Command, args []string, whole bool) error {
	root.InitDefaultHelpCmd()
	if !root.CompletionOptions.DisableDefaultCmd {
		root.InitDefaultCompletionCmd(args...)
	}
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if !whole {
		rest = withoutUnfinished(cmd.Flags(), rest)
	}
	if rest, err = withoutPlaceholders(cmd.Flags(), rest); err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	positional := cmd.Flags().Args()
	if cmd.DisableFlagParsing { // it has commands
		positional = rest
	}
	for _, arg := range positional {
		if strings.HasPrefix(arg, "examples/") {
			if _, err := os.Stat(arg); err != nil {
				return err
			}
		}
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return nil
	}
	if whole && (!cmd.Runnable() || cmd.DisableFlagParsing && len(positional) == 0) {
		return fmt.Errorf("%s needs a command", cmd.CommandPath())
	}
	err = cmd.ValidateArgs(positional)
	if err != nil && !whole && (len(positional) == 0 || cmd.ValidateArgs(append(positional, "NAME")) == nil) {
		return nil // the beginning of a command that works
	}
	return err
}

// withoutUnfinished leaves out a last flag without its value, when there is such a flag.
func withoutUnfinished(flags *pflag.FlagSet, args []string) []string {
	if len(args) == 0 {
		return args
	}
	last := flags.Lookup(strings.TrimPrefix(args[len(args)-1], "--"))
	if last != nil && last.NoOptDefVal == "" && strings.HasPrefix(args[len(args)-1], "--") {
		return args[:len(args)-1]
	}
	return args
}

// withoutPlaceholders leaves out flags whose value is a placeholder, which need not be of the
// flag's type. It returns an error when there is no such flag.
func withoutPlaceholders(flags *pflag.FlagSet, args []string) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		flag := flags.Lookup(strings.TrimPrefix(name, "--"))
		if len(name) == 2 && name[0] == '-' && name != "--" {
			flag = flags.ShorthandLookup(name[1:])
		}
		switch {
		case args[i] == unknown: // whatever else is given
			continue
		case args[i] == "--": // nothing behind is a flag
			return append(out, args[i:]...), nil
		case !strings.HasPrefix(name, "-"), name == "-":
		case flag == nil:
			return nil, fmt.Errorf("there is no flag %s", name)
		case has && isPlaceholder(value):
			continue
		case !has && flag.NoOptDefVal == "" && i+1 < len(args) && isPlaceholder(args[i+1]):
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out, nil
}

// flagsOf splits arguments into positional ones and flags with their values. Flags that take no
// value are in switches; every other one must be in valued.
func flagsOf(args, valued, switches []string) (positional []string, flags map[string][]string, err error) {
	flags = map[string][]string{}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		switch {
		case !strings.HasPrefix(name, "-") || name == "-":
			positional = append(positional, args[i])
			continue
		case slices.Contains(switches, name):
		case !slices.Contains(valued, name):
			return nil, nil, fmt.Errorf("no rule knows the flag %s", name)
		case !has && i+1 == len(args):
			return nil, nil, fmt.Errorf("%s has no value", name)
		case !has:
			i++
			value = args[i]
		}
		flags[name] = append(flags[name], value)
	}
	return positional, flags, nil
}

// ruleOfKubectl checks kubectl berth by its own flags, and of kubectl's other commands those that
// the pages use, with the folders and the names of objects that are ours.
func ruleOfKubectl(c call, whole bool) error {
	if len(c.args) > 1 && c.args[1] == "berth" {
		return ruleOfCommand(plugin(), c.args[2:], whole)
	}
	args := c.args[1:]
	if !whole && len(args) > 0 && strings.HasPrefix(args[len(args)-1], "-") {
		args = args[:len(args)-1]
	}
	positional, flags, err := flagsOf(args,
		[]string{"-n", "--namespace", "-o", "--output", "-l", "--selector", "-k", "-f", "--replicas", "--group", "--user", "--clusterrole", "--role", "--kubeconfig", "--context", "--tail", "-c", "--from-file"},
		[]string{"-A", "--all-namespaces", "--previous", "--overwrite", "--wait", "-w", "--watch"})
	if err != nil {
		return err
	}
	verbs := []string{"get", "describe", "logs", "apply", "delete", "scale", "rollout", "create", "annotate", "taint", "uncordon", "auth", "port-forward", "label", "version"}
	if len(positional) == 0 || !slices.Contains(verbs, positional[0]) {
		if !whole && len(positional) == 0 {
			return nil
		}
		return fmt.Errorf("no rule knows kubectl %v", positional)
	}
	for _, folder := range flags["-k"] {
		if _, err := os.Stat(filepath.Join(folder, "kustomization.yaml")); err != nil {
			return err
		}
	}
	for _, file := range flags["-f"] {
		if strings.HasPrefix(file, "examples/") {
			if _, err := os.Stat(file); err != nil {
				return err
			}
		}
	}
	names := slices.Concat(flags["--clusterrole"], flags["--role"])
	for _, arg := range positional {
		if _, name, found := strings.Cut(arg, "/"); found {
			names = append(names, name)
		}
	}
	return areInstalled(names)
}

// areInstalled returns an error for a name of ours that no manifest has.
func areInstalled(names []string) error {
	for _, name := range names {
		if !strings.HasPrefix(name, "berth") || isPlaceholder(name) {
			continue
		}
		line, found := regexp.MustCompile(`(?m)name: `+regexp.QuoteMeta(name)+`$`), false
		err := filepath.WalkDir("deploy/kustomize", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			found = found || line.Match(text)
			return err
		})
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("no manifest in deploy/kustomize has the name %s", name)
		}
	}
	return nil
}

// ruleOfHelm checks that the chart is there and has the values that are set and the templates that
// are shown.
func ruleOfHelm(c call, whole bool) error {
	positional, flags, err := flagsOf(c.args[1:], []string{"-n", "--namespace", "--set", "--set-string", "-f", "--values", "--version", "--show-only"}, []string{"--create-namespace", "--reuse-values", "--install", "--wait"})
	if err != nil {
		return err
	}
	arguments := map[string]int{"install": 2, "upgrade": 2, "uninstall": 1, "template": 2, "test": 1}
	if len(positional) == 0 {
		return errors.New("helm needs a command")
	}
	want, known := arguments[positional[0]]
	if !known || whole && len(positional) != 1+want {
		return fmt.Errorf("no rule knows helm %v", positional)
	}
	if len(positional) == 3 {
		if _, err := os.Stat(filepath.Join(positional[2], "Chart.yaml")); err != nil {
			return err
		}
	}
	for _, file := range slices.Concat(flags["-f"], flags["--values"]) {
		if _, err := os.Stat(file); err != nil && strings.HasPrefix(file, "examples/") {
			return err
		}
	}
	for _, template := range flags["--show-only"] {
		if _, err := os.Stat(filepath.Join(positional[2], template)); err != nil {
			return err
		}
	}
	for _, set := range slices.Concat(flags["--set"], flags["--set-string"]) {
		name, _, _ := strings.Cut(set, "=")
		if err := isValue(name); err != nil {
			return err
		}
	}
	// No image is published yet, and the chart's default names one that would be.
	if whole && positional[0] == "install" && len(flags["-f"])+len(flags["--values"]) == 0 && !slices.ContainsFunc(flags["--set"], func(s string) bool { return strings.HasPrefix(s, "image.repository=") }) {
		return errors.New("helm install takes an image that isn't published; set image.repository")
	}
	return nil
}

// isValue returns an error when the chart has no value of a dotted name.
func isValue(name string) error {
	raw, err := os.ReadFile("deploy/chart/values.schema.json")
	if err != nil {
		return err
	}
	type schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	for _, part := range strings.Split(name, ".") {
		at := schema{}
		if err := json.Unmarshal(raw, &at); err != nil {
			return err
		}
		if raw = at.Properties[part]; raw == nil {
			return fmt.Errorf("the chart has no value %s", name)
		}
	}
	return nil
}
