package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has the webhooks of jobs' controllers served on loopback.

// webhookServer is where webhooks are served, instead of at the Service of a Deployment.
type webhookServer struct {
	port      int
	dir       string // has tls.crt and tls.key
	cert, key string // their contents, in base64
}

// newWebhookServer makes the certificate of a controller's webhooks, in a folder. It is its own authority, has
// the names that cert-controller looks for in both, and an RSA key, since cert-controller reads no other.
func newWebhookServer(t *testing.T, dir, controller string) webhookServer {
	t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now, name := time.Now(), controller+"-ca"
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{name, controller + "-webhook-service." + controller + "-system.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := webhookServer{port: port, dir: dir}
	write := func(name, kind string, der []byte) string {
		raw := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(raw)
	}
	s.cert, s.key = write("tls.crt", "CERTIFICATE", der), write("tls.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	return s
}

// secret returns the data of the Secret with the certificates, as cert-controller writes it.
func (s webhookServer) secret() map[string]any {
	return map[string]any{"ca.crt": s.cert, "ca.key": s.key, "tls.crt": s.cert, "tls.key": s.key}
}

// redirect replaces the Services of all clientConfigs in an object by addresses on loopback.
func (s webhookServer) redirect(o any) {
	switch o := o.(type) {
	case []any:
		for _, x := range o {
			s.redirect(x)
		}
	case map[string]any:
		if client, ok := o["clientConfig"].(map[string]any); ok {
			path, _, _ := unstructured.NestedString(client, "service", "path")
			o["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", s.port, path), "caBundle": s.cert}
		}
		for _, x := range o {
			s.redirect(x)
		}
	}
}
