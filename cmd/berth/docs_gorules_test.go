package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file has the rules for what is run from a checkout: make, go, and devcluster, which is a
// module of its own and is read as source.

// ruleOfMake has make print what it would do. Every variable must make a difference to that, and
// the printed commands are checked like those of a page where a rule knows their program.
func ruleOfMake(c call, whole bool) error {
	var targets, variables []string
	for _, arg := range c.args[1:] {
		if strings.Contains(arg, "=") {
			variables = append(variables, arg)
		} else {
			targets = append(targets, arg)
		}
	}
	if len(targets) == 0 {
		if whole {
			return errors.New("make needs a target")
		}
		return nil
	}
	planned, err := makePlan(c.dir, targets)
	if err != nil {
		return err
	}
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		if name == "GOOS" || name == "GOARCH" {
			continue // go reads them
		}
		with, err := makePlan(c.dir, append([]string{name + "=something-else"}, targets...))
		if err != nil {
			return err
		}
		if with == planned && !scriptsRead(planned, name) {
			return fmt.Errorf("%s makes no difference to make %s", name, strings.Join(targets, " "))
		}
	}
	if planned, err = makePlan(c.dir, slices.Concat(variables, targets)); err != nil {
		return err
	}
	return checkRecipe(planned)
}

// scriptTakes reports whether a shell script that chooses by its first argument has a case for it.
func scriptTakes(script, arg string) bool {
	_, cases, chooses := strings.Cut(script, "\ncase $1 in\n")
	return !chooses || regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(arg)+`\)`).MatchString(cases)
}

// scriptsRead reports whether a script that a recipe starts reads a variable of the environment.
func scriptsRead(planned, name string) bool {
	calls, err := callsOf(planned)
	return err == nil && slices.ContainsFunc(calls, func(c call) bool {
		text, err := os.ReadFile(c.args[0])
		return err == nil && strings.HasPrefix(string(text), "#!") && regexp.MustCompile(`\$\{?`+name+`\b`).Match(text)
	})
}

// makePlan returns the commands that make would run.
func makePlan(dir string, args []string) (string, error) {
	cmd := exec.Command("make", append([]string{"--dry-run", "--no-print-directory"}, args...)...)
	cmd.Dir = dir
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("make %s: %w: %s", strings.Join(args, " "), err, problem.String())
	}
	return string(out), nil
}

// checkRecipe checks the commands of a recipe that start go, devcluster or a script. Each line has
// a shell of its own.
func checkRecipe(text string) error {
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		calls, err := callsOf(line)
		if err != nil {
			return err
		}
		for _, c := range calls {
			program := strings.TrimPrefix(c.args[0], "./")
			if text, err := os.ReadFile(c.args[0]); err == nil && len(c.args) > 1 && !scriptTakes(string(text), c.args[1]) {
				return fmt.Errorf("%s has no case %s", c.args[0], c.args[1])
			}
			chosen := strings.Contains(c.dir+strings.Join(c.args, ""), unknown) // when the recipe runs
			if chosen || program != "go" && filepath.Base(program) != "devcluster" {
				continue
			}
			if err := rules()[program](c, true); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
		}
	}
	return nil
}

// Flags of go test and go run that take a value, and those that take none.
var (
	goValued   = []string{"-run", "-bench", "-fuzz", "-benchtime", "-fuzztime", "-count", "-timeout", "-cpu", "-tags", "-parallel", "-skip", "-cpuprofile", "-memprofile", "-coverprofile"}
	goSwitches = []string{"-v", "-race", "-benchmem", "-short", "-json"}
)

// ruleOfGo checks that what is to be tested or run is there, with its flags.
func ruleOfGo(c call, whole bool) error {
	if len(c.args) < 3 {
		if whole {
			return errors.New("go needs a command and a package")
		}
		return nil
	}
	switch c.args[1] {
	case "test":
		return ruleOfGoTest(c)
	case "run":
		return ruleOfGoRun(c)
	case "build", "vet", "generate", "mod", "install", "tool":
		return nil
	}
	return fmt.Errorf("no rule knows go %s", c.args[1])
}

// ruleOfGoRun takes a package of the repository with its flags, or a tool at a version.
func ruleOfGoRun(c call) error {
	pkg := c.args[2]
	if !strings.HasPrefix(pkg, ".") {
		if !strings.Contains(pkg, "@v") {
			return fmt.Errorf("%s has no version", pkg)
		}
		return nil
	}
	src, err := readSource(c.dir+pkg, func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
	if err != nil {
		return err
	}
	if src.name != "main" {
		return fmt.Errorf("%s is the package %s and can't be run", pkg, src.name)
	}
	for _, arg := range c.args[3:] {
		if err := src.takes(arg); err != nil {
			return err
		}
	}
	return nil
}

// ruleOfGoTest checks that each name in -run, -bench and -fuzz is one of a function in the packages.
func ruleOfGoTest(c call) error {
	var own []string // flags that tests define, with their values
	var known []string
	for i, args := 0, c.args[2:]; i < len(args); i++ {
		name, _, has := strings.Cut(args[i], "=")
		switch {
		case slices.Contains(goSwitches, name), !strings.HasPrefix(name, "-"):
			known = append(known, args[i])
		case slices.Contains(goValued, name):
			known = append(known, args[i])
			if !has && i+1 < len(args) {
				i++
				known = append(known, args[i])
			}
		default:
			own = append(own, args[i])
		}
	}
	positional, flags, err := flagsOf(known, goValued, goSwitches)
	if err != nil {
		return err
	}
	tests, err := sourceOfTests(c.dir, positional)
	if err != nil {
		return err
	}
	for flag, kind := range map[string]string{"-run": "Test", "-bench": "Benchmark", "-fuzz": "Fuzz"} {
		for _, pattern := range flags[flag] {
			if err := tests.haveFunction(kind, pattern); err != nil {
				return err
			}
		}
	}
	for _, arg := range own {
		if err := tests.takes(arg); err != nil {
			return err
		}
	}
	return nil
}

// sourceOfTests reads the tests of packages as they are given to go test. An argument that isn't
// a package is the value of a test's own flag.
func sourceOfTests(dir string, args []string) (source, error) {
	all := source{}
	packages := 0
	for _, pkg := range args {
		if !strings.HasPrefix(pkg, ".") {
			continue
		}
		packages++
		root, below := strings.CutSuffix(pkg, "...")
		err := filepath.WalkDir(filepath.Join(dir, root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			src, err := readSource(path, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
			if err == nil {
				all.functions = append(all.functions, src.functions...)
				all.flags = append(all.flags, src.flags...)
			} else if !below {
				return err
			}
			if !below {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			return all, err
		}
	}
	if packages == 0 {
		return readSource(filepath.Join(".", dir), func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	}
	return all, nil
}

// source is what the rules need of Go files.
type source struct {
	name      string // of the package
	functions []string
	flags     []string
}

// flagsOfLibraries are those that tests get by importing a library.
var flagsOfLibraries = map[string][]string{
	"github.com/cockroachdb/datadriven": {"rewrite"},
	"pgregory.net/rapid":                {"rapid.checks", "rapid.seed", "rapid.failfile", "rapid.v"},
}

var definesFlag = regexp.MustCompile(`^(Bool|Int|Int64|Uint|Uint64|Float64|String|Duration|StringSlice|StringArray)(Var)?P?$`)

// readSource reads the Go files of a folder.
func readSource(dir string, wanted func(name string) bool) (source, error) {
	src := source{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return src, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || !wanted(e.Name()) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return src, err
		}
		src.name = file.Name.Name
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				src.functions = append(src.functions, f.Name.Name)
			}
		}
		src.flags = append(src.flags, flagsDefinedIn(file)...)
		for _, imported := range file.Imports {
			path, _ := strconv.Unquote(imported.Path.Value)
			src.flags = append(src.flags, flagsOfLibraries[path]...)
		}
	}
	if src.name == "" {
		return src, fmt.Errorf("%s has no Go files for that", dir)
	}
	return src, nil
}

// flagsDefinedIn returns the names that are given to functions that define flags.
func flagsDefinedIn(node ast.Node) (names []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || !definesFlag.MatchString(sel.Sel.Name) {
			return true
		}
		for _, arg := range c.Args {
			if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				name, _ := strconv.Unquote(lit.Value)
				names = append(names, name)
				break
			}
		}
		return true
	})
	return names
}

// takes returns an error when an argument is a flag that isn't defined.
func (s *source) takes(arg string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if strings.HasPrefix(arg, "-") && name != "h" && name != "help" && !slices.Contains(s.flags, name) {
		return fmt.Errorf("no flag %s is defined there", arg)
	}
	return nil
}

// haveFunction returns an error when one of the alternatives of a pattern matches no function of a
// kind. The part of the pattern after the first slash is for subtests and is not looked at.
func (s *source) haveFunction(kind, pattern string) error {
	top, _, _ := strings.Cut(pattern, "/")
	alternatives := []string{top}
	if !strings.ContainsAny(top, "()") {
		alternatives = strings.Split(top, "|")
	}
	for _, one := range alternatives {
		re, err := regexp.Compile(one)
		if err != nil {
			return err
		}
		if one == "^$" || isPlaceholder(one) {
			continue
		}
		if !slices.ContainsFunc(s.functions, func(f string) bool { return strings.HasPrefix(f, kind) && re.MatchString(f) }) {
			return fmt.Errorf("no %s there matches %q", kind, one)
		}
	}
	return nil
}

// ruleOfDevcluster checks the command and its flags by the functions of devcluster that make a
// command with that Use.
func ruleOfDevcluster(c call, whole bool) error {
	if len(c.args) < 2 || strings.HasPrefix(c.args[1], "-") {
		if whole && !slices.Contains(c.args, "--help") {
			return errors.New("devcluster needs a command")
		}
		return nil
	}
	flags, err := flagsOfDevcluster(c.args[1])
	if err != nil {
		return err
	}
	src := source{flags: append(flags, "help")}
	for _, arg := range c.args[2:] {
		if len(arg) == 2 && arg[0] == '-' {
			continue // a shorthand
		}
		if err := src.takes(arg); err != nil {
			return fmt.Errorf("devcluster %s: %w", c.args[1], err)
		}
	}
	return nil
}

// flagsOfDevcluster returns the flags of a command of devcluster.
func flagsOfDevcluster(command string) (flags []string, err error) {
	uses := regexp.MustCompile(`Use:\s+"` + regexp.QuoteMeta(command) + `[" ]`)
	found := false
	err = filepath.WalkDir("devcluster", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && uses.Match(text[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset]) {
				found = true
				flags = append(flags, flagsDefinedIn(f)...)
			}
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("devcluster has no command %s", command)
	}
	return flags, err
}
