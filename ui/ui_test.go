package ui_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/ui"
)

var (
	pictures = flag.String("pictures", "", "a directory for pictures of all pages")
	images   = flag.String("images", "", "a directory for the pictures that docs/web-page.md shows: ../docs/images")
)

// cluster is a small cluster in which much is going on.
var cluster = filepath.Join("..", "edge", "api", "testdata", "cluster.yaml")

// TestThePageIsSmall holds the page to 250 KB, and to 90 KB as a server sends it.
func TestThePageIsSmall(t *testing.T) {
	raw, packed := 0, 0
	err := fs.WalkDir(ui.Files(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".md" {
			return err
		}
		text, err := fs.ReadFile(ui.Files(), path)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(text)
		_ = w.Close()
		raw, packed = raw+len(text), packed+b.Len()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	size := fmt.Sprintf("the page has %.0f KB, %.0f KB packed", float64(raw)/1e3, float64(packed)/1e3)
	t.Log(size)
	if raw == 0 || raw > 250e3 || packed > 90e3 {
		t.Error(size)
	}
}

// TestThePageIsBuilt: dist is what was built last, and from the files that are here, the schema of the API among them. It needs
// no Node: the build writes the sums of what it read and wrote.
func TestThePageIsBuilt(t *testing.T) {
	sums, err := os.ReadFile("built.sums")
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		built[file] = true
		if text, err := os.ReadFile(filepath.FromSlash(file)); err != nil || fmt.Sprintf("%x", sha256.Sum256(text)) != sum {
			t.Errorf("ui/%s isn't what the page was built with (%v): run make ui, and commit what it writes", file, err)
		}
	}
	for _, dir := range []string{"dist", "public", "src"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".test.ts") && !built[filepath.ToSlash(path)] {
				t.Errorf("the page was built without ui/%s: run make ui, and commit what it writes", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !built["../edge/api/schema.json"] || !built["package-lock.json"] {
		t.Error("built.sums lacks the schema of the API or the versions of packages")
	}
}
