package realnode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// Load makes an image of one program that is linked statically, and gives it to containerd.
func (n *Node) Load(image, program string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	archive, err := imageOf(image, binary)
	if err != nil {
		return err
	}
	path := n.path("image.tar")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	return n.Import(path)
}

// Import gives containerd the images of an archive, as docker save writes it.
func (n *Node) Import(path string) error {
	_, err := n.ctr("images", "import", path)
	return err
}

// imageOf returns the archive of an image whose only file is the program that it runs.
func imageOf(image string, binary []byte) ([]byte, error) {
	layer, err := archive(file{"program", 0o755, binary})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/program"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	return archive(file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer}, file{"manifest.json", 0o644, manifest})
}

// file is a file of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// archive returns a tar archive of files.
func archive(files ...file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
