package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// This file finds the commands of a page: the lines of its blocks that begin with "$ ", and the
// code spans that begin with the name of a program.

// shown is a shell command as a page shows it.
type shown struct {
	where string // FILE:LINE
	text  string
	whole bool // it stands in a block; a span may name a command without its arguments
}

// pages returns the paths of all pages below the current folder. The changelog speaks of what was.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"bin", "dist", "node_modules", "out", "testdata"}, name) || strings.HasPrefix(name, ".") && len(name) > 1 && name != ".github"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md") && path != "CHANGELOG.md":
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 20 {
		t.Fatalf("there are %d pages: %v", len(paths), paths)
	}
	return paths
}

// programs are the words that make a code span that begins with one of them a command.
var programs = []string{"berth", "bin/berth", "kubectl", "helm", "make", "go", "devcluster", "devcluster/bin/devcluster", "cd"}

var span = regexp.MustCompile("`([^`]+)`")

// commandsOf returns the commands that a page shows.
func commandsOf(path, text string) []shown {
	var out []shown
	fenced := false
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line, where := strings.TrimSpace(lines[i]), fmt.Sprintf("%s:%d", path, i+1)
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced && strings.HasPrefix(line, "$ "):
			for ; strings.HasSuffix(line, `\`) && i+1 < len(lines); i++ {
				line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(lines[i+1])
			}
			out = append(out, shown{where, strings.TrimPrefix(line, "$ "), true})
		case fenced && beginsWithProgram(line) && !strings.HasSuffix(line, "."):
			out = append(out, shown{where, line, true})
		case !fenced:
			for _, m := range span.FindAllStringSubmatch(lines[i], -1) {
				if beginsWithProgram(m[1]) {
					out = append(out, shown{where, m[1], false})
				}
			}
		}
	}
	return out
}

func beginsWithProgram(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return slices.Contains(programs, word)
}

// call is one program that a shell command starts, in a folder.
type call struct {
	dir  string // from the repository's root, "" for that
	args []string
}

// callsOf returns the programs that a shell command starts, in the order of its text.
func callsOf(text string) ([]call, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("a shell can't read it: %w", err)
	}
	var out []call
	dir := ""
	syntax.Walk(file, func(node syntax.Node) bool {
		c, ok := node.(*syntax.CallExpr)
		if !ok || len(c.Args) == 0 {
			return true
		}
		args := make([]string, len(c.Args))
		for i, word := range c.Args {
			args[i] = literal(word.Parts)
		}
		if args[0] == "cd" && len(args) == 2 {
			dir = args[1] + "/"
			return true
		}
		out = append(out, call{dir, args})
		return true
	})
	return out, nil
}

// unknown stands for what a word has only when the command is run.
const unknown = "…"

// literal returns what the parts of a word say, with unknown for substitutions.
func literal(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(literal(p.Parts))
		default:
			b.WriteString(unknown)
		}
	}
	return b.String()
}

var placeholder = regexp.MustCompile(`^[\[\]A-Z0-9_/.,-]*[A-Z]{1}[\[\]A-Z0-9_/.,-]*$`)

// isPlaceholder reports whether a word stands for one that the reader chooses: NAME, DIR, FILE....
func isPlaceholder(word string) bool {
	return strings.Contains(word, unknown) || placeholder.MatchString(word)
}
