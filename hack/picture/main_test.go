package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berthproject/berth/internal/test/testkit"
)

var rewrite = flag.Bool("rewrite", false, "draw the pictures in docs/images")

// TestPicturesShowTheText: the pictures in README.md are those of the text beside them.
func TestPicturesShowTheText(t *testing.T) {
	const dir = "../../docs/images"
	text, err := os.ReadFile(dir + "/demo.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := firstShow(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, theme := range themes {
		testkit.Generated(t, fmt.Sprintf("%s/demo-%s.svg", dir, name), draw(lines, theme), "go run ./hack/picture", *rewrite)
	}
}

// TestFirstShow: the picture has the demo's first part alone, and of a long table the first row,
// the last, and others evenly.
func TestFirstShow(t *testing.T) {
	text := "building\nsubmitted 10 pods\n\n  time │ pods │ nodes │ $/h\n"
	for i := range 40 {
		text += fmt.Sprintf("%5ds │ 1 │ 2 │ 0.10\n", i)
	}
	lines, err := firstShow(text + "\npods done  10\n\nnext, 14 services\n 2s │ 1\n")
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	for _, line := range lines {
		if row.MatchString(line) {
			table = append(table, strings.Fields(line)[0])
		}
	}
	if got, want := strings.Join(table, " "), "0s 3s 6s 9s 12s 15s 18s 21s 24s 27s 30s 33s 36s 39s"; got != want {
		t.Errorf("the picture has the rows %s, want %s", got, want)
	}
	if lines[0] != "submitted 10 pods" || lines[len(lines)-1] != "pods done  10" {
		t.Errorf("the picture has\n%s\nwant what is between the line of the pods and the next part", strings.Join(lines, "\n"))
	}
	if _, err := firstShow("devcluster: expected the demo to end"); err == nil {
		t.Error("a text without the demo's table is drawn")
	}
}

// TestWordsKeepTheirPlaces: each word of a line is drawn where it stands on the terminal.
func TestWordsKeepTheirPlaces(t *testing.T) {
	const line = "  2s │   357      0 │  0.10"
	runes := []rune(line)
	for _, w := range wordsOf(line, themes["light"]) {
		if got := string(runes[w.at : w.at+len([]rune(w.text))]); got != w.text {
			t.Errorf("%q is drawn at %d, where %q stands", w.text, w.at, got)
		}
	}
}
