package charttest

import (
	"context"
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

// commandsOfPages returns the commands of README, pages and chart that begin with some words, by page and command. Lines that a backslash continues are one.
func commandsOfPages(t *testing.T, begin *regexp.Regexp) (out [][2]string) {
	t.Helper()
	paths := []string{filepath.Join(root, "..", "README.md"), filepath.Join(root, "chart", "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/clouds/*.md", "examples/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, "..", pattern))
		must(t, err)
		paths = append(paths, more...)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(t, err)
		text := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(raw), "")
		for line := range strings.Lines(text) {
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok && begin.MatchString(command) {
				out = append(out, [2]string{path, command})
			}
		}
	}
	return out
}

// ownValues writes the block of a page that begins with the name values.yaml to a file, and returns its path.
func ownValues(t *testing.T, page string) string {
	t.Helper()
	raw, err := os.ReadFile(page)
	must(t, err)
	m := regexp.MustCompile("(?ms)^( *)```yaml\n *# values\\.yaml\n(.*?)^ *```$").FindSubmatch(raw)
	if m == nil {
		t.Fatalf("%s has a command with values.yaml and no such file", page)
	}
	path := filepath.Join(t.TempDir(), "values.yaml")
	writeFile(t, path, regexp.MustCompile("(?m)^"+string(m[1])).ReplaceAllString(string(m[2]), ""))
	return path
}

// readHelm reads a command as Helm does, as far as pages go. Values that the release has already are those of the page's
// values.yaml.
func readHelm(t *testing.T, page, command string) (namespace string, values helmvalues.Options) {
	t.Helper()
	namespace = "default"
	words := strings.Fields(command)
	for i, word := range words {
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		} else if !strings.HasPrefix(word, "--") {
			continue
		}
		value = strings.Trim(value, "'\"")
		switch {
		case name == "--namespace":
			namespace = value
		case name == "--set":
			values.Values = append(values.Values, value)
		case name == "--reuse-values" || name == "--values" && value == "values.yaml":
			values.ValueFiles = append(values.ValueFiles, ownValues(t, page))
		case name == "--values":
			values.ValueFiles = append(values.ValueFiles, filepath.Join(root, "..", value))
		}
	}
	return namespace, values
}

// TestCommandsOfPagesInstall: the API server would create each object that a helm install, helm upgrade or kubectl apply of a
// page makes.
func TestCommandsOfPagesInstall(t *testing.T) {
	c := startCluster(t)
	_, err := c.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "berth-system"}}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "kube-system and its account", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	tried := 0
	for _, x := range commandsOfPages(t, regexp.MustCompile(`^helm (install|upgrade|template) `)) {
		where, command := x[0], x[1]
		tried++
		namespace, given := readHelm(t, where, command)
		values, err := given.MergeValues(getter.All(cli.New()))
		if err != nil {
			t.Errorf("%s: %s: %v", where, command, err)
			continue
		}
		r, err := releaseIn(t, namespace, values, current)
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
	for _, x := range commandsOfPages(t, regexp.MustCompile(`^kubectl .*apply `)) {
		where, command := x[0], x[1]
		tried++
		for _, o := range parse(t, c.applied(command)) {
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
func (c *cluster) applied(command string) []byte {
	c.t.Helper()
	m := regexp.MustCompile(` (-f|-k) (\S+)`).FindStringSubmatch(command)
	if m == nil {
		c.t.Fatalf("%s applies no file", command)
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
