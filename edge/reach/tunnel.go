package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/berthproject/berth/edge/leader"
)

// This file opens the way to the leader's pod: a port-forward through the API server, by which
// HTTPS is spoken with Berth itself, with the credentials of the kubeconfig. The pod proxy of the
// API server would be simpler, and drops the credentials.

// insideTunnel stands for the pod in URLs. It is the name in the certificate that Berth makes
// itself.
const insideTunnel = "localhost"

// throughAPIServer returns a connection to the leader.
func (f *Flags) throughAPIServer(ctx context.Context) (*Connection, error) {
	cfg, client, clock, err := f.apiClient()
	if err != nil {
		return nil, fmt.Errorf("%w, or connect to Berth directly with --server", err)
	}
	l, err := f.findLeader(ctx, client, clock)
	if err != nil {
		return nil, err
	}
	if f.Pod == "" {
		if err := f.vouchForPod(ctx, client, l); err != nil {
			return nil, err
		}
	}
	forward, err := forwardTo(ctx, cfg, client, l)
	if err != nil {
		return nil, err
	}
	speaking, err := f.speakThrough(cfg, forward, l)
	if err != nil {
		_ = forward.Close()
		return nil, err
	}
	return &Connection{http: speaking, base: fmt.Sprintf("https://%s:%d", insideTunnel, l.port), to: "Berth in pod " + l.String(), within: cfg.Timeout,
		close: func() { speaking.CloseIdleConnections(); _ = forward.Close() }, refused: refusedInTunnel}, nil
}

// refusedInTunnel words a refusal of a Berth that was reached through the API server, which has accepted
// the same credentials: so 401 is a matter of Berth's own settings.
func refusedInTunnel(status int, path string) error {
	if status == http.StatusUnauthorized {
		return errors.New("not authenticated by Berth (401), although the API server accepts these credentials: Berth accepts the tokens and client certificates that the API server accepts, " + //nolint:staticcheck // Berth is a name
			"so check Berth's --authentication-kubeconfig and --client-ca-file")
	}
	return fmt.Errorf("not authorized to get %s of Berth (403); %s", path, grantClusterRole)
}

// speakThrough returns a client that speaks HTTPS through a port-forward, with the credentials of
// the kubeconfig: a token, a client certificate, or what an exec plugin gives.
func (f *Flags) speakThrough(cfg *rest.Config, forward *forward, l *target) (*http.Client, error) {
	check, err := f.berthsCertificate(l)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return forward.connect(l.port) }}
	authenticated, err := withCredentials(cfg, base, insideTunnel, check)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: closingIdle{authenticated, base}}, nil
}

// withCredentials returns a transport around base that sends the credentials of a kubeconfig to a
// server of a name whose certificate passes check; nil has any certificate pass.
func withCredentials(cfg *rest.Config, base *http.Transport, name string, check func(tls.ConnectionState) error) (http.RoundTripper, error) {
	credentials, err := cfg.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of the kubeconfig: %w", err)
	}
	// The kubeconfig's settings for the API server's certificate don't apply to Berth's.
	credentials.TLS.CAData, credentials.TLS.CAFile, credentials.TLS.ServerName, credentials.TLS.Insecure = nil, "", "", true
	tlsConfig, err := transport.TLSConfigFor(credentials)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of the kubeconfig: %w", err)
	}
	tlsConfig.ServerName, tlsConfig.VerifyConnection = name, check
	base.TLSClientConfig = tlsConfig
	authenticated, err := transport.HTTPWrappersForConfig(credentials, base)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of the kubeconfig: %w", err)
	}
	return authenticated, nil
}

// closingIdle closes the idle connections of the transport that others are wrapped around.
type closingIdle struct {
	http.RoundTripper
	base *http.Transport
}

// CloseIdleConnections is called by http.Client's.
func (c closingIdle) CloseIdleConnections() { c.base.CloseIdleConnections() }

// berthsCertificate returns what checks the certificate at the other end before credentials go
// there: by --certificate-authority, or by the fingerprint that the Lease has. It is nil when
// neither is known, as for a certificate from a file: then it is the API server's word that this
// is the leader's pod.
func (f *Flags) berthsCertificate(l *target) (func(tls.ConnectionState) error, error) {
	if f.CA != "" {
		roots, err := readCertificates(f.CA)
		if err != nil {
			return nil, err
		}
		return func(s tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			// The name isn't checked: the pod has been found by the Lease.
			if _, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
				return fmt.Errorf("the certificate is not signed by --certificate-authority: %w", err)
			}
			return nil
		}, nil
	}
	if l.certificate == "" {
		return nil, nil
	}
	return func(s tls.ConnectionState) error {
		if got := leader.Fingerprint(s.PeerCertificates[0].Raw); got != l.certificate {
			return fmt.Errorf("the server is not the Berth that holds the Lease: its certificate has the fingerprint %s, and the Lease has %s; if Berth is just restarting, try again", got, l.certificate)
		}
		return nil
	}, nil
}

// readCertificates reads the certificates of --certificate-authority.
func readCertificates(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--certificate-authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--certificate-authority: %s has no PEM certificate", path)
	}
	return pool, nil
}

// tlsConfig says which certificate is accepted of a Berth at --server.
func (f *Flags) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{InsecureSkipVerify: f.Insecure} //nolint:gosec // the user says so
	if f.CA == "" {
		return cfg, nil
	}
	roots, err := readCertificates(f.CA)
	cfg.RootCAs = roots
	return cfg, err
}

// forward is a port-forward to a pod, over which several connections may be open. It is one connection to
// the API server, so all of them end with it.
type forward struct {
	httpstream.Connection
	requests atomic.Int64
}

// forwardTo opens a port-forward as kubectl does: over a WebSocket, and over SPDY when something
// on the way doesn't let that through.
func forwardTo(ctx context.Context, cfg *rest.Config, client kubernetes.Interface, l *target) (*forward, error) {
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(l.namespace).Name(l.pod).SubResource("portforward").URL()
	roundTripper, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a port-forward: %w", err)
	}
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: roundTripper}, http.MethodPost, url)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, cfg)
	if err != nil {
		return nil, fmt.Errorf("making a port-forward: %w", err)
	}
	dialer := portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return !refusedByServer(err) && (httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err))
	})
	type dialed struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan dialed, 1)
	go func() { // Dial takes no context
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		done <- dialed{conn, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	select {
	case d := <-done:
		if d.err != nil {
			return nil, l.unreachable(d.err)
		}
		return &forward{Connection: d.conn}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("opening a port-forward to pod %s took more than %s; check that the API server can reach the kubelet of its node", l, answerWithin)
	}
}

// refusedByServer reports whether the API server has understood a request and refuses it: it would
// in any protocol, and says less about it over SPDY.
func refusedByServer(err error) bool {
	err = upgradeCause(err)
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err)
}

// upgradeCause returns why an upgrade failed.
func upgradeCause(err error) error {
	var failed *httpstream.UpgradeFailureError
	if errors.As(err, &failed) && failed.Cause != nil {
		return failed.Cause
	}
	return err
}

// unreachable words why no port-forward was opened to the leader's pod.
func (l *target) unreachable(err error) error {
	err = upgradeCause(err)
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server rejects the credentials of the kubeconfig: %w; log in again, or choose another --context", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("not authorized to forward a port to Berth's pod %s (get and create on pods/portforward): %w; %s", l, err, grantRole(l.namespace))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("pod %s not found, which the Lease names as the leader: %w; if Berth's pods are in another namespace or their names differ from their hostnames, as with hostNetwork, set --pod NAMESPACE/NAME; if Berth does not run in a pod, set --server to its address, such as https://localhost:%d", l, err, l.port)
	}
	return fmt.Errorf("opening a port-forward to pod %s: %w", l, err)
}

// connect opens a connection to a port of the pod.
func (f *forward) connect(port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(v1.StreamType, v1.StreamTypeError)
	headers.Set(v1.PortHeader, strconv.Itoa(port))
	headers.Set(v1.PortForwardRequestIDHeader, strconv.FormatInt(f.requests.Add(1), 10))
	failure, err := f.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("the port-forward: %w", err)
	}
	_ = failure.Close() // nothing is written there
	headers.Set(v1.StreamType, v1.StreamTypeData)
	data, err := f.CreateStream(headers)
	if err != nil {
		f.RemoveStreams(failure)
		return nil, fmt.Errorf("the port-forward: %w", err)
	}
	c := &forwarded{Stream: data, forward: f, failure: failure, failed: make(chan error, 1)}
	go func() {
		said, _ := io.ReadAll(io.LimitReader(failure, 4096))
		if len(said) > 0 {
			c.failed <- fmt.Errorf("the port-forward: %s", said)
		}
		close(c.failed)
	}()
	return c, nil
}

// forwarded is one connection over a port-forward.
type forwarded struct {
	httpstream.Stream
	forward *forward
	failure httpstream.Stream
	failed  chan error // what the kubelet says has failed; closed without a value for nothing
	closing sync.Once
}

// failureWithin is how long after the end of its data a connection waits for why it ended.
const failureWithin = time.Second

// Read implements net.Conn. At the end of the data it returns what has failed at the pod, if
// something has: that nobody listens on the port, say.
func (c *forwarded) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if n > 0 || err == nil {
		return n, err
	}
	select {
	case failed := <-c.failed:
		if failed != nil {
			return n, failed
		}
	case <-time.After(failureWithin):
	}
	return n, err
}

// Close implements net.Conn.
func (c *forwarded) Close() error {
	c.closing.Do(func() {
		_ = c.Reset()
		_ = c.failure.Reset()
		c.forward.RemoveStreams(c.Stream, c.failure)
	})
	return nil
}

// LocalAddr implements net.Conn.
func (c *forwarded) LocalAddr() net.Addr { return tunnelAddr{} }

// RemoteAddr implements net.Conn.
func (c *forwarded) RemoteAddr() net.Addr { return tunnelAddr{} }

// SetDeadline implements net.Conn. There are no deadlines: requests have contexts.
func (c *forwarded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *forwarded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c *forwarded) SetWriteDeadline(time.Time) error { return nil }

type tunnelAddr struct{}

// Network implements net.Addr.
func (tunnelAddr) Network() string { return "port-forward" }

// String implements net.Addr.
func (tunnelAddr) String() string { return "port-forward" }
