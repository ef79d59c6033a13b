package ui_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
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
