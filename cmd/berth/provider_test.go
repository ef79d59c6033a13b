package main

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// berthCommand runs a command of berth, and returns what it prints.
func berthCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd, out := root(), &strings.Builder{}
	cmd.SetArgs(args)
	cmd.SetOut(out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestProviderRefusesWhatItCantDo has flags that can be refused without a cluster.
func TestProviderRefusesWhatItCantDo(t *testing.T) {
	groups := filepath.Join("..", "..", "examples", "demo", "groups.yaml")
	for _, x := range []struct{ args, want string }{
		{"simulated", "--cloud-config is required; set it to the path of a file with node groups"},
		{"simulated --listen 8086 --cloud-config " + groups, `--listen is "8086"; it must be host:port, or unix:// and the absolute path of a socket`},
		{"simulated --listen :8086 --cloud-config " + groups, `--listen is ":8086", and anyone who can reach it could remove nodes; set --tls-cert-file, --tls-private-key-file and --client-ca-file, or listen on 127.0.0.1`},
		{"simulated --cloud-config /none.yaml", "reading node groups: open /none.yaml: no such file or directory"},
		{"simulated --tls-cert-file a.crt --cloud-config " + groups, "--tls-cert-file, --tls-private-key-file and --client-ca-file go together; set all three, or none for unencrypted connections"},
		{"simulated --tls-cert-file /a.crt --tls-private-key-file /a.key --client-ca-file /ca.crt --cloud-config " + groups, "--tls-cert-file: open /a.crt: no such file or directory; it must be the path of a PEM file with a certificate"},
		{"check localhost", `address is "localhost"; it must be host:port, or unix:// and the absolute path of a socket`},
		{"check localhost:1 --cert a.crt", "key is missing; cert, key and cacert go together: set all three, or none for an unencrypted connection"},
		{"check localhost:1 --timeout 0s", "grpc_timeout is 0s; it must be greater than 0, such as 5s"},
	} {
		if _, err := berthCommand(t, append([]string{"provider"}, strings.Fields(x.args)...)...); err == nil || err.Error() != x.want {
			t.Errorf("berth provider %s:\n got %v\nwant %s", x.args, err, x.want)
		}
	}
}

// TestProviderCheckOfTheSimulatedProvider: Berth's own server is as Berth wants it, and an
// address without a server isn't.
func TestProviderCheckOfTheSimulatedProvider(t *testing.T) {
	file, err := simulatedgroup.Load(filepath.Join("..", "..", "examples", "demo", "groups.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		p := simulated.New(nil, file, time.Now, nil) // nothing is due, so the API isn't called
		done <- externalgrpc.NewServer(p).Serve(ctx, listener, externalgrpc.ServerTLS{})
	}()
	address := listener.Addr().String()
	out, err := berthCommand(t, "provider", "check", address)
	if err != nil || strings.Contains(out, "wrong") || strings.Count(out, "\n") != 15 || strings.Count(out, "ok ") != 11 {
		t.Errorf("%v\n%s", err, out)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	out, err = berthCommand(t, "provider", "check", address)
	if want := "checking " + address + ": the server does not meet all of Berth's requirements"; err == nil || err.Error() != want || !strings.Contains(out, "nothing listens at this address; start the server (if it has ended, its own log says why), or correct the address") {
		t.Errorf("without a server: %v\n%s", err, out)
	}
}
