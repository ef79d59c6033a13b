// Package charttest tests deploy/: that the chart and the kustomization have the same content,
// that values with a mistake are refused, that make image builds an image with the program and
// nothing else, and that the chart can be installed, upgraded and uninstalled on a dev cluster,
// where that image runs by it. It is a module of its own since Helm's libraries ask for other
// versions of what k8s.io/kubernetes imports than the dev cluster does.
package charttest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// devcluster is the program of the dev cluster.
var devcluster = filepath.Join("..", "..", "devcluster", "bin", "devcluster")

// entrypoint is where the image has the program.
const entrypoint = "/ko-app/berth"

// scratch is a folder that is gone when the tests have ended.
var scratch string

func TestMain(m *testing.M) {
	flag.StringVar(&devcluster, "devcluster", devcluster, "the dev cluster's program (make devcluster)")
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "charttest-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	return m.Run()
}
