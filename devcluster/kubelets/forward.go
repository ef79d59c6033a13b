package kubelets

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// This file is the server of every kubelet, of which it has one path: port-forwards. What a real
// pod would listen on, a process of this machine does on loopback, at the port that is asked for.

// serveForwards serves on loopback until the context ends. It asks nobody who they are: whoever
// reaches loopback reaches these ports without it, too.
func serveForwards(ctx context.Context, port int) error {
	crt, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return fmt.Errorf("making the kubelets' certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return fmt.Errorf("making the kubelets' certificate: %w", err)
	}
	// HTTP/2 has no upgrades.
	listener, err := tls.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		return fmt.Errorf("serving as kubelets: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/{namespace}/{pod}", forward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", forward)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "serving as kubelets has ended:", err)
		}
	}()
	return nil
}

// Limits of a port-forward.
const (
	idleFor        = 10 * time.Minute
	streamsWithin  = 30 * time.Second
	connectsWithin = 5 * time.Second
)

// forward serves a port-forward to a pod.
func forward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, toLoopback{}, r.PathValue("pod"), r.PathValue("uid"), options, idleFor, streamsWithin, portforward.SupportedProtocols)
}

// toLoopback connects the ports of all pods to those of this machine.
type toLoopback struct{}

// PortForward implements portforward.PortForwarder.
func (toLoopback) PortForward(ctx context.Context, name, _ string, port int32, stream io.ReadWriteCloser) error {
	dialer := net.Dialer{Timeout: connectsWithin}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("connecting to port %d of pod %s: %w", port, name, err)
	}
	defer conn.Close()
	ended := make(chan error, 2)
	pipe := func(to io.Writer, from io.Reader) {
		_, err := io.Copy(to, from)
		ended <- err
	}
	go pipe(conn, stream)
	go pipe(stream, conn)
	if err := <-ended; err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
