package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/berthproject/berth/edge/leader"
	"github.com/berthproject/berth/edge/observe"
)

// This file goes to the address of --server. What must hold: a credential is sent only over TLS,
// and those of the kubeconfig only to a server whose certificate is vouched for: by the Lease, which
// holds the fingerprint of a self-signed certificate of Berth's, or by a certificate authority.

// direct returns a connection to the address that --server has. With a token file, or with
// --insecure-skip-tls-verify, the kubeconfig isn't read at all; without both its credentials are sent,
// to a server that is vouched for.
func (f *Flags) direct(ctx context.Context) (*Connection, error) {
	to, err := f.address()
	if err != nil {
		return nil, err
	}
	c := &Connection{base: strings.TrimRight(f.Server, "/"), to: f.Server, direct: true, refused: refusedDirect}
	if f.TokenFile == "" && !f.Insecure {
		cfg, err := f.restConfig()
		if err == nil {
			c.within = cfg.Timeout
			return c, f.asKubeconfig(ctx, c, cfg, to.Hostname())
		}
		if !errors.Is(err, errNoKubeconfig) {
			return nil, fmt.Errorf("%w, or send a token with --token-file", err)
		}
	}
	certificates, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	base := &http.Transport{TLSClientConfig: certificates}
	var through http.RoundTripper = base
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		through = bearer{base, token}
	}
	if as := f.actingAs(); as.UserName != "" { // as a kubeconfig's credentials have it from client-go
		through = transport.NewImpersonatingRoundTripper(as, through)
	}
	c.speak(through, base)
	return c, nil
}

// actingAs returns whom --as and its kin name: Berth is to answer as it would answer that user.
func (f *Flags) actingAs() transport.ImpersonationConfig {
	k := f.kubeFlags()
	as := transport.ImpersonationConfig{UserName: *k.Impersonate, UID: *k.ImpersonateUID, Groups: *k.ImpersonateGroup, Extra: map[string][]string{}}
	for _, extra := range *k.ImpersonateUserExtra {
		key, value, _ := strings.Cut(extra, "=")
		as.Extra[key] = append(as.Extra[key], value)
	}
	return as
}

// address returns what --server has.
func (f *Flags) address() (*url.URL, error) {
	base, err := url.Parse(f.Server)
	if err != nil || base.Hostname() == "" || base.Scheme != "https" {
		return nil, fmt.Errorf("--server is %q; give an address such as https://localhost:10259", f.Server)
	}
	return base, nil
}

// token returns what --token-file or --token has, "" for neither.
func (f *Flags) token() (string, error) {
	if f.TokenFile == "" {
		return *f.kubeFlags().BearerToken, nil
	}
	token, err := os.ReadFile(f.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}

// speak makes the connection use a transport that wraps base. It follows no redirect, so that
// credentials never reach another server.
func (c *Connection) speak(through http.RoundTripper, base *http.Transport) {
	c.http = &http.Client{Transport: through, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c.close = base.CloseIdleConnections
}

// asKubeconfig makes the connection send the credentials of a kubeconfig to the Berth at a host.
func (f *Flags) asKubeconfig(ctx context.Context, c *Connection, cfg *rest.Config, host string) error {
	vouched, err := f.vouchedFor(ctx, host)
	if err != nil {
		return err
	}
	base := &http.Transport{}
	authenticated, err := withCredentials(cfg, base, host, vouched)
	if err != nil {
		return err
	}
	c.speak(authenticated, base)
	return nil
}

// vouchedFor returns what checks Berth's certificate: by --certificate-authority; without it by the
// fingerprint that the Lease has, and for another certificate by the authorities of this machine.
func (f *Flags) vouchedFor(ctx context.Context, host string) (func(tls.ConnectionState) error, error) {
	var roots *x509.CertPool // nil for those of this machine
	var leased string
	var unknown error // why there is no fingerprint
	var err error
	if f.CA != "" {
		if roots, err = readCertificates(f.CA); err != nil {
			return nil, err
		}
	} else {
		leased, unknown = f.leasedCertificate(ctx)
	}
	return func(s tls.ConnectionState) error {
		if leased != "" && leader.Fingerprint(s.PeerCertificates[0].Raw) == leased {
			return nil
		}
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host})
		switch {
		case err == nil:
			return nil
		case leased != "" && !observe.MadeByBerth(s.PeerCertificates[0]):
			return fmt.Errorf("%w, and it isn't the certificate of the Berth that holds the Lease %s, nor one that any Berth makes itself: check --server, or omit it to query the leader", err, f.Lease)
		case leased != "":
			return noLeader{fmt.Errorf("%w, and it isn't the certificate of the Berth that holds the Lease %s: an instance that stands by has another one, and is sent no credentials; omit --server to query the leader", err, f.Lease)}
		case unknown != nil:
			// Why the Lease wasn't read decides what ends this: another attempt may read the fingerprint.
			return fmt.Errorf("%v, and the Lease can't vouch for it: %w", err, unknown)
		}
		return err
	}, nil
}

// leasedCertificate returns the fingerprint that the Lease has, "" when its holder serves with a
// certificate from a file.
func (f *Flags) leasedCertificate(ctx context.Context) (string, error) {
	_, client, clock, err := f.apiClient()
	if err != nil {
		return "", err
	}
	byLease := *f
	byLease.Pod = ""
	l, err := byLease.findLeader(ctx, client, clock)
	if err != nil {
		return "", err
	}
	return l.certificate, nil
}

// bearer sends a token with each request.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// refusedDirect words a refusal of a Berth that was reached without the API server: it may not know this
// user, whose credentials were then not those of the cluster.
func refusedDirect(status int, path string) error {
	if status == http.StatusUnauthorized {
		return errors.New("not authenticated (401); give a kubeconfig with --kubeconfig, or a token with --token-file")
	}
	paths := path
	if beside := observe.RightBeside(path); beside != "" {
		paths += ", " + beside
	}
	return fmt.Errorf("not authorized to get %s (403); ask for the ClusterRole berth-viewer, or one with nonResourceURLs: [%s], verbs: [get]", path, paths)
}
