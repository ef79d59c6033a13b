package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// This file makes the certificates of one cluster. They are valid for a year, for loopback
// only, and their keys lie unencrypted in a directory that only its owner can read: good
// for tests and demos, for nothing else.

// pki is a certificate authority of one cluster, and the files that it has written.
type pki struct {
	dir string
	ca  *x509.Certificate
	key crypto.Signer
	n   int64 // serial number of the last certificate
}

// newPKI makes an authority of a name, and writes its certificate to NAME.crt and its key,
// with which certificates are signed on request, to NAME.key.
func newPKI(dir, name string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p := &pki{dir: dir, key: key, n: 1}
	p.ca = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "berth-devcluster-" + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, p.ca, p.ca, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if p.ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	if err := p.write(name+".crt", "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return p, p.writeKey(name+".key", key)
}

// newSigningKey writes a key that belongs to no certificate to NAME.key.
func (p *pki) newSigningKey(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return p.writeKey(name+".key", key)
}

// path returns the path of a file that the authority has written, by its name.
func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// issue makes a certificate, for a server on loopback and for a client of the name cn, that
// is valid for a year, and writes it and its key to NAME.crt and NAME.key.
func (p *pki) issue(name, cn string, groups ...string) error {
	return p.issueFor(365*24*time.Hour, name, cn, groups...)
}

// issueFor is issue with a certificate that is valid for a time from now on.
func (p *pki) issueFor(valid time.Duration, name, cn string, groups ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	p.n++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(p.n), Subject: pkix.Name{CommonName: cn, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.key)
	if err != nil {
		return err
	}
	if err := p.write(name+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return p.writeKey(name+".key", key)
}

func (p *pki) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return p.write(name, "EC PRIVATE KEY", der)
}

func (p *pki) write(name, kind string, der []byte) error {
	raw := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(p.path(name), raw, 0o600); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return nil
}
