package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// This file runs the commands of pages that play files of the repository, and puts what they print
// into the blocks that show it.

// printer runs commands, each once.
type printer struct {
	done map[string]string // what a command has printed
}

// printed returns what a command prints, "" if it isn't one that plays files of the repository.
func (p printer) printed(command string) (string, error) {
	if out, ok := p.done[command]; ok {
		return out, nil
	}
	calls, err := callsOf(command)
	if err != nil || len(calls) != 1 || !playsFiles(calls[0].args) {
		return "", nil
	}
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard) // progress
	cmd.SetArgs(calls[0].args[1:])
	if err := cmd.Execute(); err != nil {
		return "", err
	}
	p.done[command] = out.String()
	return out.String(), nil
}

// playsFiles reports whether arguments are of a command that reads files of the repository and
// nothing that the reader has to choose. Those of examples/scale take too long for a test.
func playsFiles(args []string) bool {
	if len(args) < 3 || args[0] != "berth" && args[0] != "bin/berth" || args[1] != "simulate" && args[1] != "plan" || slices.ContainsFunc(args[2:], isPlaceholder) {
		return false
	}
	return slices.ContainsFunc(args[2:], func(arg string) bool {
		_, err := os.Stat(arg)
		return err == nil && !strings.HasPrefix(arg, "examples/scale/")
	})
}

// withOutputs returns a page with what its commands print.
func (p printer) withOutputs(page string) (string, error) {
	var out []string
	lines := strings.Split(page, "\n")
	command := "" // of the comment above
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if of, ok := strings.CutPrefix(lines[i], "<!-- printed by: "); ok {
			command = strings.TrimSuffix(of, " -->")
			continue
		}
		if !strings.HasPrefix(lines[i], "```") {
			command = ""
			continue
		}
		end := i + 1 + slices.Index(lines[i+1:], "```")
		if end <= i {
			return "", fmt.Errorf("line %d: the block has no end", i+1)
		}
		block, err := p.blockWithOutputs(lines[i+1:end], command)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", i+1, err)
		}
		out, i, command = append(append(out, block...), lines[end]), end, ""
	}
	return strings.Join(out, "\n"), nil
}

// blockWithOutputs returns the lines of a block with what its commands print, or what another
// command prints in place of its first one.
func (p printer) blockWithOutputs(block []string, command string) (out []string, err error) {
	for len(block) > 0 {
		line := block[0]
		end := slices.IndexFunc(block[1:], func(s string) bool { return strings.HasPrefix(s, "$ ") }) + 1
		if end == 0 {
			end = len(block)
		}
		shows := block[1:end]
		block = block[end:]
		out = append(out, line)
		if command == "" {
			command, _ = strings.CutPrefix(line, "$ ")
		}
		text, err := p.printed(command)
		if err != nil {
			return nil, err
		}
		if text != "" && len(shows) > 0 {
			shows, err = paragraphs(shows, strings.TrimRight(text, "\n"))
		}
		if err != nil {
			return nil, err
		}
		out, command = append(out, shows...), ""
	}
	return out, nil
}

// paragraphs returns what a page is to show of a text: all of it, or, where the page begins with
// "…", those paragraphs whose first lines, up to a colon or a number, it has.
func paragraphs(shows []string, text string) ([]string, error) {
	if shows[0] != unknown {
		return strings.Split(text, "\n"), nil
	}
	out := []string{unknown}
	for i, shown := range strings.Split(strings.Join(shows[1:], "\n"), "\n\n") {
		first, _, _ := strings.Cut(shown, "\n")
		at := slices.IndexFunc(strings.Split(text, "\n\n"), func(s string) bool { return strings.HasPrefix(s, first) })
		if at < 0 {
			return nil, fmt.Errorf("no paragraph of what is printed begins with %q:\n%s", first, text)
		}
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, strings.Split(strings.Split(text, "\n\n")[at], "\n")...)
	}
	return out, nil
}
