package reach

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	token      atomic.Value
	calls      atomic.Int64
	kubeconfig string
}

func newDirect(t *testing.T) *direct {
	d := &direct{t: t}
	d.berth = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.calls.Add(1)
		d.token.Store(r.Header.Get("Authorization"))
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
	_, err := flags.Ask(d.t.Context(), path)
	return d.token.Load().(string), err
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

// TestNoCredentialsInClearText, nor after a redirect.
func TestNoCredentialsInClearText(t *testing.T) {
	d := newDirect(t)
	d.lease = leader.Fingerprint(d.berth.Certificate().Raw)
	var asked atomic.Int64
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer plain.Close()
	for _, server := range []string{plain.URL, strings.TrimPrefix(plain.URL, "http://"), "https://", "localhost"} {
		f := Flags{Kubeconfig: d.kubeconfig, Lease: "kube-system/berth", Server: server}
		if _, err := f.Ask(t.Context(), "/debug/status"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--server is %q; give an address such as https://", server)) {
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
	if _, err := f.Ask(t.Context(), "/debug/status"); err != nil || shown.Load() == 0 {
		t.Errorf("%d client certificates were shown, %v; want its own", shown.Load(), err)
	}
}
