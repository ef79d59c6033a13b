package charttest

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"go/build"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// This file builds the image by make image, once for all tests, with a registry on loopback in
// place of those that the base comes from and the image goes to.

// imageVersion is the version that the image is stamped with, and imageTag its tag, in which no "+" may
// be.
const (
	imageVersion = "0.0.0-dev+charttest"
	imageTag     = "0.0.0-dev-charttest"
)

// baseFile is a file of the base image, as distroless/static has some.
const baseFile = "etc/passwd"

// image is the image for the platform of this machine.
type image struct {
	v1.Image
	config *v1.ConfigFile
	root   string // the folder with its files
	name   string // what the archive calls it, without the tag
	// archive is the path of the file that docker load and ctr images import read.
	archive string
	base    []v1.Layer
}

// buildImage returns the image. Its files are gone when the tests have ended (TestMain).
var buildImage = sync.OnceValues(func() (*image, error) {
	out, err := makeImage()
	if err != nil {
		return nil, fmt.Errorf("building the image: %w", err)
	}
	return out, nil
})

// imageOf returns the image.
func imageOf(t *testing.T) *image {
	t.Helper()
	i, err := buildImage()
	must(t, err)
	return i
}

// makeImage has make image build the image on a base that is pushed for it, into a folder that
// has an older image already, and to the registry.
func makeImage() (*image, error) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	base, err := pushBase(host+"/base:nonroot", platform)
	if err != nil {
		return nil, fmt.Errorf("pushing a base: %w", err)
	}
	folder := filepath.Join(scratch, "image")
	older, err := layout.Write(folder, empty.Index)
	if err == nil {
		err = older.AppendImage(base)
	}
	if err != nil {
		return nil, fmt.Errorf("writing an older image: %w", err)
	}
	archive := filepath.Join(scratch, "archive", "berth.tar")
	c := exec.Command("make", "image", "VERSION="+imageVersion, "IMAGES="+host+"/berth", "PUSH=true", "IMAGE="+folder, "ARCHIVE="+archive)
	c.Dir = filepath.Join("..", "..")
	c.Env = append(os.Environ(), "MAKEFLAGS=", "KO_DEFAULTBASEIMAGE="+host+"/base:nonroot", "KO_DEFAULTPLATFORMS="+platform.String())
	said, err := c.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("make image: %w\n%s", err, said)
	}
	if want := "--set image.repository=" + host + "/berth --set image.tag=" + imageTag + "\n"; !strings.HasSuffix(string(said), want) {
		return nil, fmt.Errorf("make image ends with\n%s\nwant …%s", said, want)
	}

	built, err := onlyImageIn(folder)
	if err == nil {
		err = archived(archive, host+"/berth:"+imageTag, built)
	}
	if err != nil {
		return nil, err
	}
	if err := pushed(host+"/berth:"+imageTag, built); err != nil {
		return nil, err
	}
	out := &image{Image: built, root: filepath.Join(scratch, "root"), name: host + "/berth", archive: archive}
	if out.config, err = built.ConfigFile(); err != nil {
		return nil, err
	}
	if out.base, err = base.Layers(); err != nil {
		return nil, err
	}
	return out, unpack(built, out.root)
}

// onlyImageIn returns the image of a folder, which has no other.
func onlyImageIn(folder string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(m.Manifests) != 1 {
		return nil, fmt.Errorf("in %s are %d images, want the one that was built: %+v", folder, len(m.Manifests), m.Manifests)
	}
	return index.Image(m.Manifests[0].Digest)
}

// archived returns an error unless an archive has an image under a name, by which kind load image-archive and ctr images
// import know it.
func archived(path, ref string, want v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	got, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		return fmt.Errorf("looking for %s in the archive: %w", ref, err)
	}
	has, err := got.ConfigName()
	if err != nil {
		return err
	}
	if config, err := want.ConfigName(); err != nil || has != config {
		return fmt.Errorf("the archive has %s as %s, what was built is %s (%w)", ref, has, config, err)
	}
	return nil
}

// pushed returns an error unless a registry has an image under a name.
func pushed(ref string, want v1.Image) error {
	at, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	got, err := remote.Head(at)
	if err != nil {
		return fmt.Errorf("looking for the image that was pushed: %w", err)
	}
	if digest, err := want.Digest(); err != nil || got.Digest != digest {
		return fmt.Errorf("%s is %s, what was built is %s (%w)", ref, got.Digest, digest, err)
	}
	return nil
}

// pushBase pushes an image that is to others what distroless/static is: a few files, and a user
// who isn't root.
func pushBase(ref string, platform v1.Platform) (v1.Image, error) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	text := "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	err := w.WriteHeader(&tar.Header{Name: baseFile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Config = v1.Config{User: "65532", WorkingDir: "/home/nonroot", Env: []string{"PATH=/usr/bin:/bin"}, Cmd: []string{"/of/the/base"}}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, err
	}
	to, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	return img, remote.Write(to, img)
}

// unpack writes the files of an image to a folder.
func unpack(img v1.Image, root string) error {
	stream := mutate.Extract(img)
	defer stream.Close()
	for files := tar.NewReader(stream); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking the image: %w", err)
		}
		path := filepath.Join(root, filepath.Clean("/"+h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = writeFrom(path, files, h.FileInfo().Mode())
		default:
			err = fmt.Errorf("it is of the type %q", h.Typeflag)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s of the image: %w", h.Name, err)
		}
	}
}

// TestImage: the image has the base's files, the program, and nothing else; it runs the program
// as the base's user, who isn't root. The program is static, without symbols and paths of the
// machine that built it, and says the version that it was built with.
func TestImage(t *testing.T) {
	i := imageOf(t)
	if c := i.config.Config; c.User != "65532" || !slices.Equal(c.Entrypoint, []string{entrypoint}) || len(c.Cmd) > 0 {
		t.Errorf("the image runs %v with %v as %q, want %s as 65532", c.Entrypoint, c.Cmd, c.User, entrypoint)
	}
	layers, err := i.Layers()
	must(t, err)
	// One is for files of the source tree that a program wants at run time; Berth wants none.
	var added []string
	var size int64
	for n, l := range layers {
		if n < len(i.base) {
			want, err := i.base[n].Digest()
			must(t, err)
			if got, err := l.Digest(); err != nil || got != want {
				t.Errorf("layer %d is %s (%v), want %s of the base", n, got, err, want)
			}
			continue
		}
		packed, err := l.Size()
		must(t, err)
		size += packed
		added = append(added, filesOf(t, l)...)
	}
	if !slices.Equal(added, []string{entrypoint}) || len(layers) > len(i.base)+2 {
		t.Errorf("%d layers add the files %v, want %s alone", len(layers)-len(i.base), added, entrypoint)
	}

	program := filepath.Join(i.root, entrypoint)
	raw, err := os.ReadFile(program)
	must(t, err)
	t.Logf("the program has %.1f MB, %.1f MB packed", float64(len(raw))/1e6, float64(size)/1e6)
	isStaticAndStripped(t, program)
	tree, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	for _, path := range []string{tree + "/", build.Default.GOPATH + "/"} {
		if bytes.Contains(raw, []byte(path)) {
			t.Errorf("the program has the path %s of the machine that built it", path)
		}
	}
	c := exec.Command(entrypoint, "version")
	c.SysProcAttr, c.Dir, c.Env = confined(i.root, 65532, 65532), "/", i.config.Config.Env
	said, err := c.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(said), "berth "+imageVersion+" ") {
		t.Errorf("berth version says %q (%v), want the version %s", said, err, imageVersion)
	}
	// The Go command knows no commit of what git worktree has made, where .git is a file.
	if git, err := os.Stat(filepath.Join(tree, ".git")); err == nil && git.IsDir() && !strings.Contains(string(said), "\ncommit "+commitOf(t, tree)) {
		t.Errorf("berth version says %q, want the commit %s", said, commitOf(t, tree))
	}
}

// commitOf returns the commit that is checked out in a folder.
func commitOf(t *testing.T, tree string) string {
	t.Helper()
	c := exec.Command("git", "rev-parse", "HEAD")
	c.Dir = tree
	out, err := c.Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// filesOf returns the paths of a layer's files.
func filesOf(t *testing.T, l v1.Layer) (out []string) {
	t.Helper()
	raw, err := l.Uncompressed()
	must(t, err)
	defer raw.Close()
	for files := tar.NewReader(raw); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		if h.Typeflag != tar.TypeDir {
			out = append(out, filepath.Clean("/"+h.Name))
		}
	}
}

// isStaticAndStripped: a program asks for no loader and no library, and has neither symbols nor
// what debuggers read.
func isStaticAndStripped(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	must(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %s: it is linked dynamically", p.Type)
		}
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB || strings.Contains(s.Name, "debug") {
			t.Errorf("the program has a section %s: it isn't stripped", s.Name)
		}
	}
}
