package observe

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"testing"
	"time"
)

// TestServesWithACertificateOfItsOwn serves without any flag about certificates: clients that trust
// what OwnCertificate returns connect by the names and addresses of this machine. Its key is of
// an elliptic curve: Berth binds nothing before it serves, and an RSA key takes up to a second to make.
func TestServesWithACertificateOfItsOwn(t *testing.T) {
	o := NewServing()
	o.secure.BindAddress = net.IPv4(127, 0, 0, 2)
	var err error
	if o.secure.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	address, err := NewServer(slog.New(slog.DiscardHandler)).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.ParseCertificate(o.OwnCertificate())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := own.PublicKey.(*ecdsa.PublicKey); !ok {
		t.Errorf("the certificate's key is a %T, want one of an elliptic curve", own.PublicKey)
	}
	if left := time.Until(own.NotAfter); left < 364*24*time.Hour {
		t.Errorf("the certificate is valid for another %s, want a year", left)
	}
	roots := x509.NewCertPool()
	roots.AddCert(own)
	for name, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.0.0.2": true, "example.com": false} {
		c, err := tls.Dial("tcp", address.String(), &tls.Config{RootCAs: roots, ServerName: name})
		if (err == nil) != want {
			t.Errorf("connecting as to %s: %v; want it to succeed: %t", name, err, want)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}
