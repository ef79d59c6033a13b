package charttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/cli"
	helmvalues "helm.sh/helm/v4/pkg/cli/values"
	"helm.sh/helm/v4/pkg/getter"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// This file runs the commands of pages that install something, as far as they go without a cluster of one's own: what Helm
// would install by each, and what kubectl would apply, is put to the API server, which creates nothing. That all commands of
// all pages have the flags, files and names that they use is a test of cmd/berth.

// helmCommand is a helm install, upgrade or template of a page.
type helmCommand struct {
	where, namespace string
	values           helmvalues.Options
}

// commandsOfPages returns the commands of README, pages and chart that begin with some words, by where they stand.
// Lines that a backslash continues are one.
func commandsOfPages(t *testing.T, begin *regexp.Regexp) map[string]string {
	t.Helper()
	paths := []string{filepath.Join(root, "..", "README.md"), filepath.Join(root, "chart", "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/clouds/*.md", "examples/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, "..", pattern))
		must(t, err)
		paths = append(paths, more...)
	}
	out := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(t, err)
		text := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(raw), "")
		for n, line := range strings.Split(text, "\n") {
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok && begin.MatchString(command) {
				out[fmt.Sprintf("%s, command %d", path, n+1)] = command
			}
		}
	}
	return out
}

// readHelm reads a command as Helm does, as far as pages go. A file of values that isn't an example is the page's own, which
// valuesOfPages has.
func readHelm(where, command string) helmCommand {
	out := helmCommand{where: where, namespace: "default"}
	words := strings.Fields(command)
	for i, word := range words {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		} else if !strings.HasPrefix(word, "--") {
			continue
		}
		value = strings.Trim(value, "'\"")
		switch name {
		case "--namespace", "-n":
			out.namespace = value
		case "--set":
			out.values.Values = append(out.values.Values, value)
		case "--values", "-f":
			if strings.HasPrefix(value, "examples/") {
				out.values.ValueFiles = append(out.values.ValueFiles, filepath.Join(root, "..", value))
			}
		}
	}
	return out
}

// TestCommandsOfPagesInstall: the API server would create each object that a helm install, helm upgrade or kubectl apply of a
// page makes.
func TestCommandsOfPagesInstall(t *testing.T) {
	c := startCluster(t)
	for _, name := range []string{"berth-system", "NAMESPACE"} {
		_, err := c.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)}}, metav1.CreateOptions{})
		must(t, err)
	}
	eventually(t, "kube-system and its account", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	tried := 0
	for where, command := range commandsOfPages(t, regexp.MustCompile(`^helm (install|upgrade|template) `)) {
		tried++
		h := readHelm(where, command)
		values, err := h.values.MergeValues(getter.All(cli.New()))
		if err != nil {
			t.Errorf("%s: %s: %v", where, command, err)
			continue
		}
		r, err := releaseIn(t, strings.ToLower(h.namespace), values, current)
		if err != nil {
			t.Errorf("%s: %s: %v", where, command, err)
			continue
		}
		for _, o := range parse(t, []byte(r.Manifest)) {
			if err := c.tryCreate(o); err != nil {
				t.Errorf("%s: %s: %s: %v", where, command, id(o), err)
			}
		}
	}
	for where, command := range commandsOfPages(t, regexp.MustCompile(`^kubectl .*apply `)) {
		tried++
		for _, o := range parse(t, c.applied(where, command)) {
			if o.GetNamespace() == "" {
				o.SetNamespace("default") // for kinds that have one
			}
			if err := c.tryCreate(o); err != nil {
				t.Errorf("%s: %s: %s: %v", where, command, id(o), err)
			}
		}
	}
	if tried < 15 {
		t.Errorf("the pages have %d commands that install something; are they found?", tried)
	}
}

// applied returns the objects that a kubectl apply of a file or a kustomization of this repository makes.
func (c *cluster) applied(where, command string) []byte {
	c.t.Helper()
	m := regexp.MustCompile(` (-f|-k) (\S+)`).FindStringSubmatch(command)
	if m == nil {
		c.t.Fatalf("%s: %s applies no file", where, command)
	}
	path := filepath.Join(root, "..", m[2])
	if m[1] == "-f" {
		raw, err := os.ReadFile(path)
		must(c.t, err)
		return raw
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	must(c.t, err)
	raw, err := built.AsYaml()
	must(c.t, err)
	return raw
}
