package purity

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file keeps the source readable by numbers: files and functions that fit on some screens, few packages that are
// too small to be worth a name, and enough comments. All modules of the repository count; generated code and test
// data don't.

const (
	// maxLines is how many lines a file may have, tests included.
	maxLines = 500
	// maxFunction is how many lines of code a function may have: empty lines and comments aside. Tests may be longer,
	// since tables of cases are part of them.
	maxFunction = 60
	// A package of fewer than smallPackage lines counts as small, tests aside; mostSmall is how many may be so small.
	smallPackage = 150
	mostSmall    = 18
	// leastComments is the share of comments in the lines that aren't empty, in percent.
	leastComments = 17.0
)

// sourceFile is a file of Go code that somebody has written.
type sourceFile struct {
	path string // relative to the root, with slashes
	text []byte
}

// test reports whether a file is one of tests.
func (f *sourceFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// handWritten returns the files of all modules. What is ignored, such as modules of npm, isn't looked at.
func handWritten(t *testing.T) (out []sourceFile) {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	ignored := []string{".git", "bin", "out", "node_modules", "rapid", "testdata"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(ignored, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(file) {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out = append(out, sourceFile{filepath.ToSlash(rel), text})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 500 {
		t.Fatalf("there are %d files; the test looks in the wrong place", len(out))
	}
	return out
}

// countLines returns how many lines of a text are code, and how many are nothing but a comment of two slashes.
func countLines(text []byte) (code, comments int) {
	for line := range bytes.Lines(text) {
		switch line = bytes.TrimSpace(line); {
		case bytes.HasPrefix(line, []byte("//")):
			comments++
		case len(line) > 0:
			code++
		}
	}
	return code, comments
}

// TestFilesAndFunctionsAreShort looks at each file, and at each function that isn't a test's.
func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, f := range handWritten(t) {
		if n := bytes.Count(f.text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, want at most %d: divide it by its subjects", f.path, n, maxLines)
		}
		if f.test() {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, f.path, f.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			body := f.text[set.Position(fn.Pos()).Offset:set.Position(fn.End()).Offset]
			if code, _ := countLines(body); code > maxFunction {
				t.Errorf("%s: %s has %d lines of code, want at most %d: take a part with a name of its own out of it", set.Position(fn.Pos()), fn.Name.Name, code, maxFunction)
			}
		}
	}
}

// TestFewPackagesAreSmall counts the lines of packages.
func TestFewPackagesAreSmall(t *testing.T) {
	lines := map[string]int{}
	for _, f := range handWritten(t) {
		if !f.test() {
			lines[filepath.Dir(f.path)] += bytes.Count(f.text, []byte("\n"))
		}
	}
	var small []string
	for pkg, n := range lines {
		if n < smallPackage {
			small = append(small, pkg)
		}
	}
	if len(small) > mostSmall {
		slices.Sort(small)
		t.Errorf("%d of %d packages have fewer than %d lines, want at most %d: put one beside what uses it\n%s", len(small), len(lines), smallPackage, mostSmall, strings.Join(small, "\n"))
	}
}

// TestCodeIsCommented computes the share of comments in all code that isn't a test's.
func TestCodeIsCommented(t *testing.T) {
	code, comments := 0, 0
	for _, f := range handWritten(t) {
		if !f.test() {
			a, b := countLines(f.text)
			code, comments = code+a, comments+b
		}
	}
	if share := 100 * float64(comments) / float64(code+comments); share < leastComments {
		t.Errorf("comments are %.2f %% of %d lines, want at least %.0f %%: say what the code can't, such as why, units, invariants and what happens on failure", share, code+comments, leastComments)
	}
}

// banned has phrases that comments don't have, each with what to write instead.
var banned = map[string]string{"tells whether": "reports whether", "takes that": "records that", "takes note": "records that"}

// TestCommentsAreInPlainEnglish looks for phrases of Berth's early days.
func TestCommentsAreInPlainEnglish(t *testing.T) {
	phrase := regexp.MustCompile(`//.*\b(` + strings.Join(slices.Sorted(maps.Keys(banned)), "|") + `)\b`)
	for _, f := range handWritten(t) {
		for i, line := range bytes.Split(f.text, []byte("\n")) {
			if m := phrase.FindSubmatch(line); m != nil {
				t.Errorf("%s:%d: %q: write %q", f.path, i+1, m[1], banned[string(m[1])])
			}
		}
	}
}
