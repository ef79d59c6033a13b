// Package hack has tests of the scripts in this folder.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNeedGo says which Go is needed, and which was found: an older one, one that may not fetch
// another, and none.
func TestNeedGo(t *testing.T) {
	for _, x := range []struct{ name, script, want string }{
		{"the one that is needed", "echo go1.26.0", ""},
		{"a newer one", "echo go1.101.2", ""},
		{"one without toolchains", `[ "$1" = env ] && echo go1.20.14 || echo go version go1.20.14 linux/amd64`, "is go1.20.14: https://go.dev/doc/install"},
		{"one that can't get another", `[ "$1" = env ] && exit 1; echo go version go1.24.3 linux/amd64`, "is go1.24.3: https://go.dev/doc/install"},
		{"one that is broken", "exit 1", "is of no known version: https://go.dev/doc/install"},
		{"none", "", "there is no go on the PATH: https://go.dev/doc/install"},
	} {
		folder := t.TempDir()
		if x.script != "" {
			if err := os.WriteFile(filepath.Join(folder, "go"), []byte("#!/bin/sh\n"+x.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, tool := range []string{"bash", "env", "awk", "sort", "head", "dirname", "sh"} {
			path, err := exec.LookPath(tool)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path, filepath.Join(folder, tool)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("./need-go")
		cmd.Env = []string{"PATH=" + folder}
		out, err := cmd.CombinedOutput()
		if x.want == "" && (err != nil || len(out) > 0) {
			t.Errorf("%s is refused: %v\n%s", x.name, err, out)
		}
		if x.want != "" && (err == nil || !strings.HasPrefix(string(out), "Go 1.26") || !strings.Contains(string(out), x.want)) {
			t.Errorf("%s: %v\n%s\nwant …%s", x.name, err, out, x.want)
		}
	}
}
