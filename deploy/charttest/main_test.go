package charttest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// What the tests run: the dev cluster, and Berth as it is in the image.
var (
	devcluster = filepath.Join("..", "..", "devcluster", "bin", "devcluster")
	binary     = filepath.Join("..", "..", "out", "berth")
)

// entrypoint is where the image has the binary.
const entrypoint = "/ko-app/berth"

func TestMain(m *testing.M) {
	flag.StringVar(&devcluster, "devcluster", devcluster, "the dev cluster's program (make devcluster)")
	flag.StringVar(&binary, "berth", binary, "Berth as it is in the image (make release BINARY=out/berth)")
	flag.Parse()
	os.Exit(m.Run())
}
