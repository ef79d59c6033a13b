package conformance_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/devcluster/oracle"
)

// This file has the kube-schedulers that Berth is compared with: the newest is linked with the tests,
// and every other is a program of its own, in a module that requires its version.

// programs are the folders of the modules whose programs answer for older versions.
var programs = map[compat.Version]string{compat.V36: "../oracle136"}

// peer is kube-scheduler of a version.
type peer struct {
	oracle.Asked
	version compat.Version
	devices bool // what it says of devices is compared
}

// linked is what the kube-scheduler of the tests has and an older one hasn't.
var linked = oracle.Linked{
	// It looks for terminating victims in a snapshot that can be changed.
	Option:    func(l *oracle.Lister) frameworkruntime.Option { return frameworkruntime.WithMutableSnapshotLister(l) },
	TaintRule: &resourcev1.DeviceTaintRule{},
	TrackRules: func(o *resourceslicetracker.Options, f informers.SharedInformerFactory) {
		o.TaintInformer = f.Resource().V1().DeviceTaintRules()
	},
}

// peerOf returns kube-scheduler of a version with the first profile of a configuration, until t ends.
// An error says what it refuses.
func peerOf(t *testing.T, v compat.Version, text string) (peer, error) {
	t.Helper()
	// Devices are compared in the default profile only: others may lack the plugins before DynamicResources.
	p, err := peerWith(t, v, oracle.Setup{Config: text, Devices: comparesDevices && text == ""})
	p.devices = comparesDevices && text == ""
	return p, err
}

// peerWith returns kube-scheduler of a version as it is set up, until t ends.
func peerWith(t *testing.T, v compat.Version, setup oracle.Setup) (peer, error) {
	t.Helper()
	if v == compat.Newest {
		setup.Linked = linked
		o, err := oracle.New(t.Context(), setup)
		return peer{Asked: o, version: v}, err
	}
	c := exec.CommandContext(t.Context(), programOf(t, v))
	c.Stderr = os.Stderr
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() }) // killed with the context of t
	o, err := oracle.Connect(to, bufio.NewReaderSize(from, 1<<20), setup)
	return peer{Asked: o, version: v}, err
}

// built are the programs that this process has built.
var built struct {
	sync.Mutex
	paths map[compat.Version]string
	dir   string
}

// programOf builds the program of a version, once, and returns its path.
func programOf(t *testing.T, v compat.Version) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path := built.paths[v]; path != "" {
		return path
	}
	path := filepath.Join(built.dir, "oracle-"+v.String())
	c := exec.Command("go", "build", "-o", path, ".")
	c.Dir = programs[v]
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("building the program in %s: %v\n%s", c.Dir, err, out)
	}
	built.paths[v] = path
	return path
}

// TestMain removes the programs at the end.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "berth-conformance-")
	if err != nil {
		panic(err)
	}
	built.dir, built.paths = dir, map[compat.Version]string{}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// eachVersion runs a test for every version that Berth follows.
func eachVersion(t *testing.T, test func(t *testing.T, v compat.Version)) {
	for _, v := range compat.Versions() {
		t.Run(v.String(), func(t *testing.T) { test(t, v) })
	}
}
