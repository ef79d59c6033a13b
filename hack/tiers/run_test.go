package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shell is a stage that runs a script.
func shell(name, script string) stage {
	return stage{name: name, what: "it", cmds: []command{{args: []string{"bash", "-c", script}}}}
}

// play runs stages in an empty folder, and returns what people see.
func play(t *testing.T, r runner, stages ...stage) (string, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	var out strings.Builder
	r.out, r.tier = &out, "sometimes"
	err := r.run(t.Context(), stages)
	return out.String(), err
}

func TestATierEndsWithItsFirstFailureUnlessItGoesOn(t *testing.T) {
	bad, good := shell("bad", "echo spoilt; echo 'repeat: do it again'; exit 1"), shell("good", "echo fine")
	for _, goOn := range []bool{false, true} {
		out, err := play(t, runner{goOn: goOn}, bad, good)
		if err == nil {
			t.Errorf("goes on=%t: no error:\n%s", goOn, out)
		}
		if strings.Contains(out, "fine") != goOn {
			t.Errorf("goes on=%t: people see\n%s", goOn, out)
		}
		for _, want := range []string{"== bad 1/2: it", "== bad FAILED after", "bad failed (log: out/sometimes/bad.log)", "repeat: do it again"} {
			if !strings.Contains(out, want) {
				t.Errorf("goes on=%t: people don't see %q in\n%s", goOn, want, out)
			}
		}
		if raw, err := os.ReadFile("out/sometimes/bad.log"); err != nil || !strings.Contains(string(raw), "spoilt") {
			t.Errorf("the log: %v, %q", err, raw)
		}
	}
}

func TestACommandThatSaysNothingElseIsRepeatedAsItIs(t *testing.T) {
	if out, err := play(t, runner{}, shell("bad", "exit 3")); err == nil || !strings.Contains(out, "repeat: bash -c 'exit 3'") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAMissingToolIsSkippedAndFailsInCI(t *testing.T) {
	s := shell("special", "echo ran")
	s.needs = &tool{find: func() error { return errors.New("no compiler") }}
	for _, ci := range []bool{false, true} {
		out, err := play(t, runner{ci: ci}, s)
		if (err != nil) != ci {
			t.Errorf("CI=%t: the error is %v", ci, err)
		}
		if strings.Contains(out, "ran") || !strings.Contains(out, "no compiler") {
			t.Errorf("CI=%t: people see\n%s", ci, out)
		}
	}
}

func TestATestThatIsSkippedFailsInCI(t *testing.T) {
	skipped := &results{ran: map[string]bool{}, skipped: []string{"TestX in m/p: needs a browser"}}
	allowed := &results{ran: map[string]bool{}, skipped: []string{"TestY in m/p: needs data, which is not part of the repository"}}
	for _, x := range []struct {
		ci   bool
		seen *results
		ok   bool
	}{{false, skipped, true}, {true, skipped, false}, {true, allowed, true}} {
		r, o := &runner{ci: x.ci}, &outcome{}
		r.judge(o, command{pkgs: []string{"."}}, x.seen, nil)
		if o.ok() != x.ok {
			t.Errorf("CI=%t, %v: the errors are %v", x.ci, x.seen.skipped, o.errs)
		}
	}
}

// TestATestThatIsGoneIsMissed: a tier that names its tests fails when one of them was renamed.
func TestATestThatIsGoneIsMissed(t *testing.T) {
	o := &outcome{}
	(&runner{}).judge(o, command{pkgs: []string{"."}, tests: []string{"TestA", "TestB"}}, &results{ran: map[string]bool{"TestA": true}}, nil)
	if len(o.errs) != 1 || !strings.Contains(o.errs[0].Error(), "TestB") {
		t.Errorf("the errors are %v", o.errs)
	}
}

func TestAFailureIsRepeatedByOneCommand(t *testing.T) {
	c := command{dir: "devcluster", env: []string{"CGO_ENABLED=1"}, pkgs: []string{"./..."}, flags: []string{"-count=1", "-rapid.seed=5"}, match: "Property"}
	for _, x := range []struct {
		failure
		want string
	}{
		{failure{pkg: module + "/devcluster/conformance", test: "TestX/a_b"}, "(cd devcluster && CGO_ENABLED=1 go test ./conformance -count=1 -rapid.seed=5 -run '^TestX$/^a_b$')"},
		{failure{pkg: module + "/devcluster/conformance", test: "TestX", seed: "-rapid.seed=7"}, "(cd devcluster && CGO_ENABLED=1 go test ./conformance -count=1 -rapid.seed=7 -run '^TestX$')"},
		{failure{pkg: module + "/devcluster/conformance"}, "(cd devcluster && CGO_ENABLED=1 go test ./conformance -count=1 -rapid.seed=5 -run Property)"},
	} {
		if got := c.repeating(x.failure).String(); got != x.want {
			t.Errorf("%+v is repeated by\n%s, want\n%s", x.failure, got, x.want)
		}
	}
}

// root is the repository's root.
var root = filepath.Join("..", "..")

// TestNoTestIsInNoTier: each package with tests in the nested modules is in a stage of make nightly,
// and what make test picks by name exists.
func TestNoTestIsInNoTier(t *testing.T) {
	for _, module := range []string{"devcluster", "deploy/charttest", "hack/generate", "hack/promcheck"} {
		var covered []string
		for _, s := range nightlyStages(settings{}) {
			for _, c := range s.cmds {
				if c.dir == module {
					covered = append(covered, c.pkgs...)
				}
			}
		}
		err := filepath.WalkDir(filepath.Join(root, module), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			pkg, err := filepath.Rel(filepath.Join(root, module), filepath.Dir(name))
			if pkg = "./" + filepath.ToSlash(pkg); pkg == "./." {
				pkg = "."
			}
			if !slices.ContainsFunc(covered, func(pattern string) bool { return matches(pattern, pkg) }) {
				t.Errorf("no stage of make nightly runs the tests of %s in %s", pkg, module)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// matches reports whether a pattern of go test has a package.
func matches(pattern, pkg string) bool {
	folder, all := strings.CutSuffix(pattern, "/...")
	return pkg == folder || all && (folder == "." || strings.HasPrefix(pkg, folder+"/"))
}

// TestTheTiersAreNested: each stage of make check is in make test, and each of make test in make
// nightly, where it has at least the same packages.
func TestTheTiersAreNested(t *testing.T) {
	for _, x := range []struct{ small, large []stage }{
		{checkStages(settings{}), testStages(settings{})},
		{testStages(settings{}), nightlyStages(settings{})},
	} {
		for _, s := range x.small {
			i := slices.IndexFunc(x.large, func(o stage) bool { return o.name == s.name })
			if i < 0 {
				t.Errorf("the stage %s is missing in the larger tier", s.name)
				continue
			}
			for _, c := range s.cmds {
				for _, pkg := range c.pkgs {
					if !slices.ContainsFunc(x.large[i].cmds, func(o command) bool {
						return o.dir == c.dir && slices.ContainsFunc(o.pkgs, func(pattern string) bool {
							return matches(pattern, pkg) || matches(pattern, strings.TrimSuffix(pkg, "/..."))
						})
					}) {
						t.Errorf("the stage %s of the larger tier lacks %s", s.name, pkg)
					}
				}
			}
		}
	}
}

// TestHelpIsShort: people choose from one screen.
func TestHelpIsShort(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if targets := regexp.MustCompile(`(?m)^[a-z0-9]+:.*## `).FindAllString(string(raw), -1); len(targets) == 0 || len(targets) > 16 {
		t.Errorf("make help lists %d targets, want at most 16", len(targets))
	}
}
