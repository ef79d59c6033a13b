package externalgrpc_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/internal/test/devpki"
)

// authority makes an authority with certificates for a server and a client.
func authority(t *testing.T) *devpki.Authority {
	t.Helper()
	a, err := devpki.New(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server", "client"} {
		if err := a.Issue(name, name); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// serveTLS serves a provider with mutual TLS until the test ends, and returns the address.
func serveTLS(t *testing.T, a *devpki.Authority, cert string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		files := externalgrpc.ServerTLS{Cert: a.Path(cert + ".crt"), Key: a.Path(cert + ".key"), ClientCA: a.Path("ca.crt")}
		done <- externalgrpc.NewServer(newFakeProvider(group("g"))).Serve(ctx, listener, files)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return listener.Addr().String()
}

func config(address string, a *devpki.Authority, cert string) *externalgrpc.Config {
	return &externalgrpc.Config{Address: address, Cert: a.Path(cert + ".crt"), Key: a.Path(cert + ".key"), CACert: a.Path("ca.crt"), Timeout: &metav1.Duration{Duration: 5 * time.Second}}
}

// TestWhoIsThere has clients and servers that don't know each other, and servers that speak
// something else: the error says what to do.
func TestWhoIsThere(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	now := time.Now()
	if err := ours.IssueLike("elsewhere", &x509.Certificate{Subject: pkix.Name{CommonName: "x"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"elsewhere"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"expired", "server-expired"} {
		if err := ours.IssueLike(name, &x509.Certificate{Subject: pkix.Name{CommonName: "x"}, NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ours.IssueLike("no-client", &x509.Certificate{Subject: pkix.Name{CommonName: "x"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	plain := serve(t, newFakeProvider(group("g")), nil)
	secured := serveTLS(t, ours, "server")
	for _, x := range []struct {
		name string
		cfg  *externalgrpc.Config
		want string // what the error has; "" for none
	}{
		{"each other", config(secured, ours, "client"), ""},
		{"a server of another authority", config(serveTLS(t, theirs, "server"), ours, "client"), "cacert must have the CA of the server's certificate"},
		{"a client of another authority", &externalgrpc.Config{Address: secured, Cert: theirs.Path("client.crt"), Key: theirs.Path("client.key"), CACert: ours.Path("ca.crt")}, "the server rejects the client's certificate; cert must be signed by its client CA"},
		{"a client's certificate that has expired", config(secured, ours, "expired"), "the client's certificate has expired; renew cert"},
		{"a certificate for servers only", config(secured, ours, "no-client"), "the server rejects the client's certificate; cert must be signed by its client CA and be valid now"},
		{"a server with another name", config(serveTLS(t, ours, "elsewhere"), ours, "client"), "the host in address must be a name of the server's certificate"},
		{"a server's certificate that has expired", config(serveTLS(t, ours, "server-expired"), ours, "client"), "renew the server's certificate"},
		{"a server that doesn't encrypt", config(plain, ours, "client"), "the server does not use TLS; remove cert, key and cacert, or make it serve TLS"},
		{"a client that doesn't encrypt", &externalgrpc.Config{Address: secured}, "the server at this address does not speak gRPC, or requires TLS; if it does, set cert, key and cacert"},
		{"a web server", &externalgrpc.Config{Address: strings.TrimPrefix(web.URL, "http://")}, "an HTTP/1.1 server listens at this address, not one of the externalgrpc protocol"},
		{"a server of something else", &externalgrpc.Config{Address: greeter(t)}, "the server at this address does not speak gRPC, or requires TLS; if it does, set cert, key and cacert"},
		{"another grpc service", &externalgrpc.Config{Address: healthServer(t)}, "another gRPC service listens at this address, not one of the externalgrpc protocol"},
		{"nobody", &externalgrpc.Config{Address: nobody(t)}, "nothing listens at this address; start the server (if it has ended, its own log says why), or correct the address"},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := &bed{now: now}
			_, err := b.connect(t, x.cfg).Groups(t.Context())
			// A server that closes the connection may do so before its reason is read.
			for try := 0; try < 100 && err != nil && strings.Contains(err.Error(), "the server closed the connection"); try++ {
				_, err = b.connect(t, x.cfg).Groups(t.Context())
			}
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.HasSuffix(err.Error(), "; "+x.want)) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
}

// greeter serves a protocol in which the server speaks first.
func greeter(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 mail.example.org ESMTP ready, what can we do for you today?\r\n")
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// healthServer serves grpc's health service and no other.
func healthServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	healthv1.RegisterHealthServer(g, health.NewServer())
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	return listener.Addr().String()
}

// nobody returns an address at which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestTheServerMayComeLater: a client of a server that isn't there yet works when it is.
func TestTheServerMayComeLater(t *testing.T) {
	b := &bed{now: time.Now()}
	address := nobody(t)
	c := b.connect(t, &externalgrpc.Config{Address: address})
	if _, err := c.Groups(t.Context()); err == nil {
		t.Fatal("the groups were read of nobody")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- externalgrpc.NewServer(newFakeProvider(group("g"))).Serve(ctx, listener, externalgrpc.ServerTLS{})
	}()
	for {
		groups, err := c.Groups(t.Context())
		if err == nil {
			if len(groups) != 1 {
				t.Errorf("got %v", groups)
			}
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond): // the next try to connect has its pause
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestARenewedCertificateCounts without a restart of the client.
func TestARenewedCertificateCounts(t *testing.T) {
	a := authority(t)
	cfg := config(serveTLS(t, a, "server"), a, "client")
	b := &bed{now: time.Now()}
	b.Client = b.connect(t, cfg)
	if err := a.IssueLike("client", &x509.Certificate{Subject: pkix.Name{CommonName: "x"}, NotBefore: b.now.Add(-2 * time.Hour), NotAfter: b.now.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Groups(t.Context()); err == nil {
		t.Fatal("the certificate of the file has expired, and the server took another")
	}
	if err := a.Issue("client", "client"); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := b.Groups(t.Context()); err == nil {
			return
		}
		<-time.After(20 * time.Millisecond) // the next try to connect has its pause
	}
	t.Error("the renewed certificate isn't used")
}

// TestAConfigurationIsChecked before anything connects.
func TestAConfigurationIsChecked(t *testing.T) {
	a := authority(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	garbage := file("garbage", "no certificate")
	full := fmt.Sprintf("address: localhost:8086\ncert: %s\nkey: %s\ncacert: %s\n", a.Path("client.crt"), a.Path("client.key"), a.Path("ca.crt"))
	for _, x := range []struct {
		name, text, want string
	}{
		{"Cluster Autoscaler's file", full + "grpc_timeout: 30s\n", ""},
		{"no encryption", "address: localhost:8086\n", ""},
		{"a key of somebody else's", full + "region: eu\n", ""},
		{"no YAML", "address: [", `error converting YAML to JSON: yaml: line 1: did not find expected node content; it must be YAML with the keys address, cert, key, cacert and grpc_timeout`},
		{"no address", "grpc_timeout: 5s", `address is ""; it must be host:port, or unix:// and the absolute path of a socket`},
		{"no port", "address: localhost", `address is "localhost"; it must be host:port, or unix:// and the absolute path of a socket`},
		{"no time", "address: localhost:1\ngrpc_timeout: 0s", `grpc_timeout is 0s; it must be greater than 0, such as 5s`},
		{"no authority", fmt.Sprintf("address: localhost:1\ncert: %s\nkey: %s\n", a.Path("client.crt"), a.Path("client.key")), `cacert is missing; cert, key and cacert go together: set all three, or none for an unencrypted connection`},
		{"an authority only", "address: localhost:1\ncacert: " + a.Path("ca.crt"), `cert is missing; cert, key and cacert go together: set all three, or none for an unencrypted connection`},
		{"a file that isn't there", strings.Replace(full, a.Path("client.crt"), "/none.crt", 1), `cert: open /none.crt: no such file or directory; it must be the path of a PEM file with a certificate`},
		{"a key that isn't there", strings.Replace(full, a.Path("client.key"), "/none.key", 1), `key: open /none.key: no such file or directory; it must be the path of a PEM file with the certificate's key`},
		{"somebody else's key", strings.Replace(full, a.Path("client.key"), a.Path("server.key"), 1),
			`cert ` + a.Path("client.crt") + ` and key ` + a.Path("server.key") + `: tls: private key does not match public key; they must be PEM files with a certificate and the key that belongs to it`},
		{"no authority in the file", strings.Replace(full, a.Path("ca.crt"), garbage, 1), `cacert ` + garbage + ` has no certificate; it must be a PEM file with CA certificates`},
	} {
		t.Run(x.name, func(t *testing.T) {
			path := file("config.yaml", x.text)
			cfg, unknown, err := externalgrpc.LoadConfig(path)
			if x.want == "" {
				if err != nil || cfg.Address != "localhost:8086" || cfg.Private() != strings.Contains(x.text, "cert") || (unknown != "") != strings.Contains(x.text, "region") {
					t.Errorf("got %+v, unknown %q, %v", cfg, unknown, err)
				}
				return
			}
			if want := "--cloud-config " + path + ": " + x.want; err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
	if _, _, err := externalgrpc.LoadConfig("/none.yaml"); err == nil || err.Error() != "--cloud-config: open /none.yaml: no such file or directory; it must be the path of a file with the keys address, cert, key and cacert" {
		t.Errorf("got %v", err)
	}
}
