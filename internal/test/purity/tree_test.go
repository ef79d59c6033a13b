package purity

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
)

// maxFile is how large a file of the repository may be, in bytes. What is larger was built or measured, and
// would stay in everybody's clone for ever.
const maxFile = 1 << 20

// TestNoFileIsLarge looks at all files but those that are ignored: built programs, results, modules of npm.
func TestNoFileIsLarge(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	ignored := []string{".git", "bin", "out", "node_modules", "rapid"}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(ignored, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular() || path == filepath.Join(root, "berth"): // of go build ./cmd/berth, and ignored
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if files++; info.Size() > maxFile {
			t.Errorf("%s has %d bytes, want at most %d: a built file belongs into bin or out", path, info.Size(), maxFile)
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were looked at: %v", files, err)
	}
}
