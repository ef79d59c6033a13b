package controlplane

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAnAPIServerOfAnotherVersion: it is started with the flags alone, as kube-apiserver itself takes them.
func TestAnAPIServerOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "kube-apiserver")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{apiServer: program, dir: dir, starts: map[string]int{}}
	p, err := c.StartComponent("kube-apiserver", "--secure-port=1")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err == nil {
		t.Error("a component that ends by itself is no error")
	}
	if got := tail(p.log, 1); got != "--secure-port=1" {
		t.Errorf("it was started with %q, want --secure-port=1", got)
	}
}
