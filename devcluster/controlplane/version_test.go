package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersionIsTheModules: who updates k8s.io/kubernetes updates Version with it.
func TestVersionIsTheModules(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "\tk8s.io/kubernetes "+Version+"\n") {
		t.Errorf("go.mod doesn't require k8s.io/kubernetes %s", Version)
	}
}
