package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fences  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// TestLinksOfPagesLeadSomewhere: every link to a file of the repository is to one that is there,
// and an anchor is one of its headings.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	t.Chdir(repository)
	links := 0
	for _, page := range append(pages(t), "CHANGELOG.md") {
		for _, m := range link.FindAllStringSubmatch(textOf(t, page), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			if err := leadsSomewhere(t, page, to); err != nil {
				t.Errorf("%s: %s: %v", page, to, err)
			}
		}
	}
	if links < 150 {
		t.Errorf("the pages have %d links; are they found?", links)
	}
}

// textOf returns a page without its blocks.
func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fences.ReplaceAllString(string(text), "")
}

func leadsSomewhere(t *testing.T, page, to string) error {
	t.Helper()
	path, anchor, _ := strings.Cut(to, "#")
	target := page
	if path != "" {
		target = filepath.Join(filepath.Dir(page), path)
	}
	if _, err := os.Stat(target); err != nil || anchor == "" {
		return err
	}
	var anchors []string
	for _, m := range heading.FindAllStringSubmatch(textOf(t, target), -1) {
		anchors = append(anchors, anchorOf(m[1]))
	}
	if !slices.Contains(anchors, anchor) {
		return fmt.Errorf("%s has no such heading; it has %v", target, anchors)
	}
	return nil
}

// anchorOf returns the anchor that GitHub gives a heading.
func anchorOf(title string) string {
	title = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// TestEveryDecisionHasStatusAndDate: a record in docs/decisions begins with its number, its title,
// and a status with a date, and the index has it.
func TestEveryDecisionHasStatusAndDate(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(repository, "docs/decisions/0*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	index := textOf(t, filepath.Join(repository, "docs/decisions/README.md"))
	for _, path := range paths {
		name := filepath.Base(path)
		number := strings.TrimLeft(name[:4], "0")
		begins := regexp.MustCompile(`^# ` + number + `\. .+\n\nStatus: (accepted|superseded), \d{4}-\d\d-\d\d`)
		text := textOf(t, path)
		if !begins.MatchString(text) {
			t.Errorf("%s begins with\n%.200s\nwant a heading with the number %s, and a line with status and date", name, text, number)
		}
		if title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "+number+". "), "\n"); !strings.Contains(index, "["+title+"]("+name+")") {
			t.Errorf("docs/decisions/README.md doesn't list %s as %q", name, title)
		}
	}
}
