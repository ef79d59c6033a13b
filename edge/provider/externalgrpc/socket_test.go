package externalgrpc_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/edge/provider/externalgrpc"
)

// TestAServerAtASocket is checked through a unix socket, as a provider in Berth's pod is: without TLS, and with
// a socket that a server before it has left behind.
func TestAServerAtASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "provider.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	address := "unix://" + path
	if err := (externalgrpc.ServerTLS{}).MayListen(address); err != nil {
		t.Fatal(err)
	}
	listener, err := externalgrpc.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v; want it to be its owner's alone", info, err)
	}
	if _, err := externalgrpc.Listen(t.Context(), address); err == nil || !strings.Contains(err.Error(), "another server listens") {
		t.Errorf("a second server at the socket: %v, want that another listens", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- externalgrpc.NewServer(twoGroups()).Serve(ctx, listener, externalgrpc.ServerTLS{})
	}()
	cfg := &externalgrpc.Config{Address: address, Timeout: &metav1.Duration{Duration: 10 * time.Second}}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if !cfg.Private() {
		t.Error("a socket counts as one that others reach")
	}
	var said strings.Builder
	if err := externalgrpc.Check(t.Context(), cfg, externalgrpc.Checking{}, &said); err != nil {
		t.Errorf("the check: %v\n%s", err, said.String())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := externalgrpc.Listen(t.Context(), address); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}

// TestAddresses names what is wrong with one.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"unix:///run/p.sock":                  "",
		"localhost:1":                         "",
		"unix://run/p.sock":                   "absolute path",
		"unix://":                             "absolute path",
		"unix:///" + strings.Repeat("p", 107): "at most 107 bytes",
		"/run/p.sock":                         "must be host:port",
	} {
		err := (&externalgrpc.Config{Address: address}).Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
