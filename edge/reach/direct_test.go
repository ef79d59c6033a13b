package reach

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/edge/leader"
)

// This file specifies who is told the credentials of the kubeconfig by --server.

// direct is a Berth and the API server of its cluster, whose Lease names a certificate.
type direct struct {
	t          *testing.T
	berth      *httptest.Server
	lease      string // fingerprint in the Lease
	status     int    // that the API server answers with, 0 for OK
	token      atomic.Value
	as         atomic.Value // the headers that say who is to be taken for the user
	calls      atomic.Int64
	kubeconfig string
}

func newDirect(t *testing.T) *direct {
	d := &direct{t: t}
	d.berth = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.calls.Add(1)
		d.token.Store(r.Header.Get("Authorization"))
		d.as.Store(fmt.Sprint(r.Header["Impersonate-User"], r.Header["Impersonate-Uid"], r.Header["Impersonate-Group"], r.Header["Impersonate-Extra-Team"]))
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	}))
	d.berth.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that refuse its certificate
	d.berth.StartTLS()
	t.Cleanup(d.berth.Close)

	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/leases/berth") {
			http.NotFound(w, r)
			return
		}
		if d.status != 0 {
			w.WriteHeader(d.status)
			return
		}
		holder, seconds, now := "host_1", int32(15), metav1.NewMicroTime(time.Now())
		lease := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "berth", Labels: map[string]string{leader.CertificateLabel: d.lease}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(lease)
	}))
	t.Cleanup(api.Close)
	d.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: api.URL, CertificateAuthorityData: certificateOf(api)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"me": {Token: "secret"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "me"}},
		CurrentContext: "c",
	}, d.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return d
}

// certificateOf returns a server's certificate in PEM.
func certificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// ask gets a path with flags, and returns the credentials that Berth was sent, "" for none.
func (d *direct) ask(flags Flags, path string) (string, error) {
	d.t.Helper()
	d.token.Store("")
	d.calls.Store(0)
	flags.Lease, flags.Server = "kube-system/berth", d.berth.URL
	_, err := askOnce(d.t.Context(), &flags, path)
	return d.token.Load().(string), err
}

// askOnce gets one path over a connection of its own.
func askOnce(ctx context.Context, f *Flags, path string) ([]byte, error) {
	c, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Get(ctx, path)
}

// TestCredentialsGoToTheCertificateOfTheLease, or to one that is signed by an authority, and to no
// other.
func TestCredentialsGoToTheCertificateOfTheLease(t *testing.T) {
	d := newDirect(t)
	folder := t.TempDir()
	own, other, token := filepath.Join(folder, "own.pem"), filepath.Join(folder, "other.pem"), filepath.Join(folder, "token")
	for path, content := range map[string][]byte{own: certificateOf(d.berth), other: otherCertificate(t), token: []byte("of-a-file")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	right := leader.Fingerprint(d.berth.Certificate().Raw)
	for _, x := range []struct {
		name        string
		flags       Flags
		lease       string
		sent, error string
	}{
		{"the Lease's certificate", Flags{}, right, "Bearer secret", ""},
		{"another certificate than the Lease's", Flags{}, leader.Fingerprint([]byte("other")), "", "it isn't the certificate of the Berth that holds the Lease kube-system/berth"},
		{"a Lease that names no certificate", Flags{}, "", "", "certificate signed by unknown authority"},
		{"a certificate of the authority", Flags{CA: own}, "", "Bearer secret", ""},
		{"a certificate of another authority than the one given", Flags{CA: other}, right, "", "certificate signed by unknown authority"},
		{"whatever --pod says", Flags{Pod: "a/b"}, right, "Bearer secret", ""},
		{"any certificate", Flags{Insecure: true}, right, "", ""},
		{"a token of a file, unchecked", Flags{Insecure: true, TokenFile: token}, "", "Bearer of-a-file", ""},
		{"a token of a file, and a certificate that nobody vouches for", Flags{TokenFile: token}, "", "", "certificate signed by unknown authority"},
	} {
		t.Run(x.name, func(t *testing.T) {
			d.lease, x.flags.Kubeconfig = x.lease, d.kubeconfig
			sent, err := d.ask(x.flags, "/debug/status")
			if sent != x.sent || (err == nil) != (x.error == "") || err != nil && !strings.Contains(err.Error(), x.error) {
				t.Errorf("sent %q and returned %v; want %q and %q", sent, err, x.sent, x.error)
			}
		})
	}
}

// TestAForwarderWaitsForTheInstanceToLead: one that stands by has another certificate than the Lease's, and gets no
// credentials. Once it leads, and the Lease has its certificate, it answers.
func TestAForwarderWaitsForTheInstanceToLead(t *testing.T) {
	d := newDirect(t)
	stranger := d.berth
	d.berth = httptest.NewUnstartedServer(stranger.Config.Handler)
	d.berth.Config.ErrorLog = stranger.Config.ErrorLog
	d.berth.TLS = &tls.Config{Certificates: []tls.Certificate{berthsOwn(t)}}
	d.berth.StartTLS()
	defer d.berth.Close()
	d.lease = leader.Fingerprint([]byte("another's"))
	d.token.Store("")
	flags := Flags{Kubeconfig: d.kubeconfig, Lease: "kube-system/berth", Server: d.berth.URL}
	f := flags.Forwarder(t.Context())
	defer f.Close()
	if err := f.Connect(t.Context()); !NoLeader(err) || !strings.Contains(err.Error(), "an instance that stands by has another one, and is sent no credentials; omit --server to query the leader") {
		t.Errorf("standing by: %v, want an error that waiting ends", err)
	}
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1alpha1/meta", nil))
		return w.Code, w.Body.String()
	}
	if code, body := ask(); code != http.StatusBadGateway || !strings.Contains(body, "omit --server") || d.token.Load() != "" {
		t.Errorf("standing by: got %d %s, and it was sent %q", code, body, d.token.Load())
	}
	d.lease = leader.Fingerprint(d.berth.Certificate().Raw)
	if code, body := ask(); code != http.StatusOK || d.token.Load() != "Bearer secret" {
		t.Errorf("leading: got %d %s, and it was sent %q", code, body, d.token.Load())
	}
	elsewhere := Flags{Kubeconfig: d.kubeconfig, Lease: "kube-system/berth", Server: stranger.URL}
	if err := elsewhere.Forwarder(t.Context()).Connect(t.Context()); !Hopeless(err) || !strings.Contains(err.Error(), "nor one that any Berth makes itself: check --server") {
		t.Errorf("a server that isn't Berth: %v, want an error that waiting doesn't end", err)
	}
	flags.CA = filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(flags.CA, otherCertificate(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := flags.Forwarder(t.Context()).Connect(t.Context()); err == nil || NoLeader(err) {
		t.Errorf("a certificate of another authority: %v, want an error that waiting doesn't end", err)
	}
}

// TestWhatWaitingCanEnd: without the Lease no certificate of Berth's own is vouched for, but the reason why there is none
// decides whether the next attempt may succeed. An answer 401 may be another the next time, and 403 isn't.
func TestWhatWaitingCanEnd(t *testing.T) {
	d := newDirect(t)
	for _, x := range []struct {
		name              string
		server            func(http.ResponseWriter, *http.Request) // nil for d's Berth
		status            int                                      // of the Lease
		want              string
		hopeless, unknown bool
	}{
		{"an API server that restarts", nil, http.StatusServiceUnavailable, "certificate signed by unknown authority, and the Lease can't vouch for it", false, false},
		{"no right to read the Lease", nil, http.StatusForbidden, "certificate signed by unknown authority, and the Lease can't vouch for it", true, false},
		{"an API server that doesn't know the user", nil, http.StatusUnauthorized, "and the Lease can't vouch for it", false, true},
		{"a Berth that can't review tokens", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, 0, "not authenticated (401)", false, true},
		{"no right to ask Berth", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, 0, "not authorized to get", true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			flags := Flags{Kubeconfig: d.kubeconfig, Lease: "kube-system/berth", Server: d.berth.URL}
			if x.server != nil {
				berth := httptest.NewTLSServer(http.HandlerFunc(x.server))
				defer berth.Close()
				flags.Server, flags.Insecure = berth.URL, true
			}
			d.status = x.status
			f := flags.Forwarder(t.Context())
			defer f.Close()
			err := f.Connect(t.Context())
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("got %v, want %q", err, x.want)
			}
			if Hopeless(err) != x.hopeless || Unauthenticated(err) != x.unknown {
				t.Errorf("%v: hopeless %t and unauthenticated %t, want %t and %t", err, Hopeless(err), Unauthenticated(err), x.hopeless, x.unknown)
			}
		})
	}
	// Names of a cluster are unknown while a VPN is down.
	if err := fmt.Errorf("querying Berth: %w", &net.DNSError{Err: "no such host", IsNotFound: true}); Hopeless(err) {
		t.Errorf("%v: it counts as one that waiting can't end", err)
	}
}

// berthsOwn returns a certificate as Berth makes one for itself.
func berthsOwn(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "berth"}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestNoCredentialsInClearText, nor after a redirect.
func TestNoCredentialsInClearText(t *testing.T) {
	d := newDirect(t)
	d.lease = leader.Fingerprint(d.berth.Certificate().Raw)
	var asked atomic.Int64
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer plain.Close()
	for _, server := range []string{plain.URL, strings.TrimPrefix(plain.URL, "http://"), "https://", "localhost"} {
		f := Flags{Kubeconfig: d.kubeconfig, Lease: "kube-system/berth", Server: server}
		if _, err := askOnce(t.Context(), &f, "/debug/status"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--server is %q; give an address such as https://", server)) {
			t.Errorf("%s: %v", server, err)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server without TLS was asked %d times", n)
	}
	if _, err := d.ask(Flags{Kubeconfig: d.kubeconfig}, "/moved"); err == nil || d.calls.Load() != 1 {
		t.Errorf("a redirect: %v after %d calls, want an error after one", err, d.calls.Load())
	}
}

// TestAClientCertificateIsShown to a Berth that the Lease vouches for.
func TestAClientCertificateIsShown(t *testing.T) {
	d := newDirect(t)
	var shown atomic.Int64
	berth := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown.Store(int64(len(r.TLS.PeerCertificates))) }))
	berth.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	berth.StartTLS()
	defer berth.Close()
	d.lease = leader.Fingerprint(berth.Certificate().Raw)
	conf, err := clientcmd.LoadFromFile(d.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	crt, key := otherKeyPair(t)
	conf.AuthInfos["me"] = &clientcmdapi.AuthInfo{ClientCertificateData: crt, ClientKeyData: key}
	if err := clientcmd.WriteToFile(*conf, d.kubeconfig); err != nil {
		t.Fatal(err)
	}
	f := Flags{Kubeconfig: d.kubeconfig, Lease: "kube-system/berth", Server: berth.URL}
	if _, err := askOnce(t.Context(), &f, "/debug/status"); err != nil || shown.Load() == 0 {
		t.Errorf("%d client certificates were shown, %v; want its own", shown.Load(), err)
	}
}

// TestActingAsSomebodyElse: whom --as names reaches Berth, whatever credentials are sent along.
func TestActingAsSomebodyElse(t *testing.T) {
	d := newDirect(t)
	d.lease = leader.Fingerprint(d.berth.Certificate().Raw)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of-a-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"nobody", []string{"--token-file", token, "--insecure-skip-tls-verify"}, "[] [] [] []"},
		{"with a token", []string{"--token-file", token, "--insecure-skip-tls-verify", "--as", "jane", "--as-uid", "7", "--as-group", "dev", "--as-group", "ops", "--as-user-extra", "team=a"}, "[jane] [7] [dev ops] [a]"},
		{"with the kubeconfig", []string{"--as", "jane", "--as-group", "dev"}, "[jane] [] [dev] []"},
	} {
		var f Flags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Register(fs)
		if err := fs.Parse(append(x.flags, "--kubeconfig", d.kubeconfig)); err != nil {
			t.Fatal(err)
		}
		d.as.Store("not asked")
		if _, err := d.ask(f, "/debug/status"); err != nil || d.as.Load() != x.want {
			t.Errorf("%s: Berth was told %s (%v), want %s", x.name, d.as.Load(), err, x.want)
		}
	}
}

// TestFlagsThatCantBeUsed are refused by their names, before anybody is asked.
func TestFlagsThatCantBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--server x":                               `--server is "x"; give an address such as https://localhost:10259`,
		"--token-file " + file:                     "--token-file needs --server; without it the credentials come from the kubeconfig, and the fingerprint of Berth's certificate from the Lease",
		"--insecure-skip-tls-verify":               "--insecure-skip-tls-verify needs --server; without it the credentials come from the kubeconfig, and the fingerprint of Berth's certificate from the Lease",
		"--pod x":                                  `--pod is "x"; it must be the pod of Berth as NAMESPACE/NAME`,
		"--lease a/b/c":                            `--lease is "a/b/c"; it must be the Lease as NAMESPACE/NAME`,
		"--service-account /x":                     `--service-account is "/x"; it must be the service account of Berth's pods as NAMESPACE/NAME`,
		"--port 65536":                             "--port is 65536; it must be from 1 to 65535, or 0 for the one in the Lease",
		"--request-timeout x":                      `--request-timeout is "x"; it must be a duration such as 30s, or 0 for the default`,
		"--as-group x":                             "--as-uid, --as-group and --as-user-extra say more about the user of --as; give --as, too",
		"--as x --as-user-extra =y":                `--as-user-extra is "=y"; it must be KEY=VALUE`,
		"--kubeconfig /missing":                    "--kubeconfig: stat /missing: no such file or directory; give the path of a file",
		"--server https://x --token-file /missing": "--token-file: stat /missing: no such file or directory; give the path of a file",
		"--certificate-authority /missing":         "--certificate-authority: stat /missing: no such file or directory; give the path of a file",
		"--server https://x --token-file " + file + " --client-certificate c": "--client-certificate and --client-key are not sent with --token-file or --insecure-skip-tls-verify; omit those, so that Berth's certificate is verified, or these",
		"": "", "--server https://x --token-file " + file + " --as x --request-timeout 0 --lease a/b": "",
		"--server https://x --pod a/b":             "--pod and --server can't be given together: with --server that address is queried, and no pod; omit one or the other",
		"--server https://x --port 1":              "--port and --server can't be given together: with --server that address is queried, and no pod; omit one or the other",
		"--server https://x --service-account a/b": "--service-account and --server can't be given together: with --server that address is queried, and no pod; omit one or the other",
		"--pod a/b --port 1 --service-account a/b": "",
	} {
		var f Flags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Register(fs)
		if err := fs.Parse(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := f.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", flags, got, want)
		}
	}
}
