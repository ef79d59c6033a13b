package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// k9sPlugin is a plugin as k9s reads it.
type k9sPlugin struct {
	ShortCut    string   `json:"shortCut"`
	Description string   `json:"description"`
	Scopes      []string `json:"scopes"`
	Background  bool     `json:"background"`
	Command     string   `json:"command"`
	Args        []string `json:"args"`
}

// line returns the command that k9s runs for an object with these variables. Of a script for sh it is what comes before
// its output goes to a pager.
func (p *k9sPlugin) line(variables map[string]string) (string, error) {
	args := slices.Clone(p.Args)
	for i, arg := range args {
		if !strings.HasPrefix(arg, "$") {
			continue
		}
		value, ok := variables[strings.TrimPrefix(arg, "$")]
		if !ok {
			return "", fmt.Errorf("%s is no variable of k9s for %v", arg, p.Scopes)
		}
		args[i] = value
	}
	if p.Command != "sh" {
		return p.Command + " " + strings.Join(args, " "), nil
	}
	if len(args) < 2 || args[0] != "-c" {
		return "", fmt.Errorf("sh is given %q, want -c and a script", args)
	}
	script, _, paged := strings.Cut(args[1], " 2>&1 | less")
	if !paged {
		return "", fmt.Errorf("%q: k9s clears the screen before anybody has read it; end it with 2>&1 | less -R", args[1])
	}
	for i, value := range args[2:] {
		used := fmt.Sprintf(`"$%d"`, i)
		if !strings.Contains(script, used) {
			return "", fmt.Errorf("%q doesn't use its argument %s", script, used)
		}
		script = strings.ReplaceAll(script, used, value)
	}
	if strings.Contains(script, "$") {
		return "", fmt.Errorf("%q uses more than its %d arguments", script, len(args)-2)
	}
	return script, nil
}

// TestThePluginsOfK9sWork: the file is one that k9s reads, each command is one of kubectl berth with its flags, and no
// shortcut is there twice in a view.
func TestThePluginsOfK9sWork(t *testing.T) {
	t.Chdir(repository)
	text, err := os.ReadFile("deploy/k9s/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Plugins map[string]k9sPlugin `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Plugins) < 3 {
		t.Errorf("there are %d plugins, want those of pods, of nodes and of the page", len(file.Plugins))
	}
	owner := map[string]string{}
	for name, p := range file.Plugins { // what is reported names its plugin
		if p.Description == "" || len(p.Scopes) == 0 || p.ShortCut == "" {
			t.Errorf("%s lacks a description, scopes or a shortcut: %+v", name, p)
		}
		for _, scope := range p.Scopes {
			key := scope + " " + p.ShortCut
			if owner[key] != "" {
				t.Errorf("%s has the shortcut of %s in %s", name, owner[key], key)
			}
			owner[key] = name
			variables := map[string]string{"NAME": "web-1", "CONTEXT": "prod"}
			if scope == "pods" { // nodes have no namespace
				variables["NAMESPACE"] = "default"
			}
			line, err := p.line(variables)
			if err == nil && !strings.HasPrefix(line, "kubectl berth ") {
				err = fmt.Errorf("%q is no command of kubectl berth", line)
			}
			if err == nil {
				err = checkCommand(shown{text: line, whole: true})
			}
			if err != nil {
				t.Errorf("%s in %s: %v", name, scope, err)
			}
		}
	}
}
