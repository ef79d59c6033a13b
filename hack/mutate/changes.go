package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

// This file finds the places where a file can be changed by one small edit that a careful
// test would notice. It looks at syntax only: a change may not compile.

// change is one edit of a source file: the bytes [from, to) become text.
// Offsets are in bytes of the file as it was read.
type change struct {
	pkg      string // import path
	file     string // relative to the root of the module
	line     int
	kind     string
	from, to int
	text     string
	tests    string // the package whose tests run first, by path in the module; "" for its own
}

// swapped has the operator by which each is replaced.
var swapped = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.INC: token.DEC, token.DEC: token.INC,
}

// changesOf returns the changes of one file in the order of its text; none for
// generated code.
// The order is stable, so a seed draws the same changes.
func changesOf(pkg, file string, text []byte) ([]change, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	f := &finder{pkg: pkg, file: file, text: text, set: set}
	ast.Inspect(tree, f.visit)
	slices.SortStableFunc(f.found, func(a, b change) int { return cmp.Compare(a.from, b.from) })
	return f.found, nil
}

// finder collects the changes of a file while it walks the tree.
type finder struct {
	pkg, file string
	text      []byte
	set       *token.FileSet
	found     []change
}

// visit adds the changes of one node. It never ends the walk: changes of inner nodes are
// possible, too.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		f.returnAtOnce(n)
	case *ast.BinaryExpr:
		// Strings are added up, and can't be subtracted.
		if !isString(n.X) && !isString(n.Y) {
			f.swap(n.OpPos, n.Op)
		}
	case *ast.IncDecStmt:
		f.swap(n.TokPos, n.Tok)
	case *ast.IfStmt:
		f.replace("condition negated", n.Cond, "!("+f.source(n.Cond)+")")
	case *ast.ExprStmt:
		// Without a panic the function often doesn't compile, and where it does
		// no working program shows the difference.
		if call, ok := n.X.(*ast.CallExpr); ok && f.source(call.Fun) != "panic" {
			f.replace("call dropped", n, "")
		}
	case *ast.DeferStmt:
		f.replace("call dropped", n, "")
	case *ast.AssignStmt:
		if len(n.Lhs) == 1 && !isString(n.Rhs[0]) {
			f.swap(n.TokPos, n.Tok)
		}
		// Without its definition a variable is missing, and the file doesn't compile.
		if n.Tok != token.DEFINE && slices.ContainsFunc(n.Lhs, isElement) {
			f.replace("assignment dropped", n, "")
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			f.replace("true for false", n, "false")
		case "false":
			f.replace("true for false", n, "true")
		}
	}
	return true
}

// swap replaces an operator by its counterpart; others than those in swapped stay.
func (f *finder) swap(at token.Pos, op token.Token) {
	other, ok := swapped[op]
	if !ok {
		return
	}
	from := f.set.Position(at).Offset
	f.add("operator swapped", from, from+len(op.String()), other.String())
}

// returnAtOnce has a function return zero values before it does anything.
func (f *finder) returnAtOnce(n *ast.FuncDecl) {
	if n.Body == nil || len(n.Body.List) == 0 {
		return
	}
	zeros := ""
	if results := n.Type.Results; results != nil {
		var values []string
		for _, r := range results.List {
			for range max(1, len(r.Names)) {
				// The zero value of any type, without knowing the type.
				values = append(values, "*new("+f.source(r.Type)+")")
			}
		}
		zeros = " " + strings.Join(values, ", ")
	}
	at := f.set.Position(n.Body.List[0].Pos()).Offset
	f.add("return at once", at, at, "return"+zeros+"; ")
}

// replace replaces the text of a node.
func (f *finder) replace(kind string, n ast.Node, text string) {
	f.add(kind, f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset, text)
}

// add records a change. Lines count from 1.
func (f *finder) add(kind string, from, to int, text string) {
	line := 1 + bytes.Count(f.text[:from], []byte("\n"))
	f.found = append(f.found, change{pkg: f.pkg, file: f.file, line: line, kind: kind, from: from, to: to, text: text})
}

// source returns the text of a node.
func (f *finder) source(n ast.Node) string {
	return string(f.text[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

// isElement reports whether an expression is a field, or an element of a map or slice.
func isElement(x ast.Expr) bool {
	switch x.(type) {
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return true
	}
	return false
}

// isString reports whether an expression begins or ends with a string constant: it
// can be added to and not subtracted from.
func isString(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Kind == token.STRING
	case *ast.BinaryExpr:
		return isString(x.X) || isString(x.Y)
	}
	return false
}

// apply returns the file's text with the change made.
func (c change) apply(text []byte) []byte {
	return slices.Concat(text[:c.from], []byte(c.text), text[c.to:])
}

// diff shows the lines that the change touches, as a unified diff does.
// Only the lines of the change are shown, without context.
func (c change) diff() string {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return err.Error()
	}
	begin := bytes.LastIndexByte(text[:c.from], '\n') + 1
	end := len(text)
	if i := bytes.IndexByte(text[c.to:], '\n'); i >= 0 {
		end = c.to + i
	}
	var b strings.Builder
	for line := range strings.SplitSeq(string(text[begin:end]), "\n") {
		fmt.Fprintf(&b, "    -%s\n", line)
	}
	for line := range strings.SplitSeq(string(text[begin:c.from])+c.text+string(text[c.to:end]), "\n") {
		if strings.TrimSpace(line) != "" {
			fmt.Fprintf(&b, "    +%s\n", line)
		}
	}
	return b.String()
}

func (c change) String() string { return fmt.Sprintf("%s:%d: %s", c.file, c.line, c.kind) }
