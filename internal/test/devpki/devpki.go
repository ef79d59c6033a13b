// Package devpki makes certificates for tests and demos. They are valid for a year, for loopback
// only, and their keys lie unencrypted in a directory that only its owner can read: good for
// tests and demos, for nothing else.
package devpki

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

// Authority is a certificate authority, and the files that it has written. Its methods are for one
// goroutine at a time.
type Authority struct {
	dir string
	ca  *x509.Certificate
	key crypto.Signer
	n   int64 // serial number of the last certificate
}

// New makes an authority of a name, and writes its certificate to NAME.crt and its key, with which
// certificates are signed on request, to NAME.key, in a directory that it makes where it doesn't
// exist.
func New(dir, name string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, key: key, n: 1}
	a.ca = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "berth-devcluster-" + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.ca, a.ca, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	if err := a.write(name+".crt", "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return a, a.writeKey(name+".key", key)
}

// Open returns an authority that has written its files already. It can't issue more.
func Open(dir string) *Authority { return &Authority{dir: dir} }

// Dir returns the directory with the files.
func (a *Authority) Dir() string { return a.dir }

// Path returns the path of a file that the authority has written, by its name.
func (a *Authority) Path(name string) string { return filepath.Join(a.dir, name) }

// Issue makes a certificate, for a server on loopback and for a client of the name cn, that
// is valid for a year, and writes it and its key to NAME.crt and NAME.key.
func (a *Authority) Issue(name, cn string, groups ...string) error {
	return a.IssueFor(365*24*time.Hour, name, cn, groups...)
}

// IssueFor is Issue with a certificate that is valid for a time from now on.
func (a *Authority) IssueFor(valid time.Duration, name, cn string, groups ...string) error {
	now := time.Now()
	return a.IssueLike(name, &x509.Certificate{
		Subject:   pkix.Name{CommonName: cn, Organization: groups},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	})
}

// IssueLike makes a certificate like another, and writes it and its key to NAME.crt and NAME.key.
func (a *Authority) IssueLike(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	a.n++
	template.SerialNumber, template.KeyUsage = big.NewInt(a.n), x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.ca, key.Public(), a.key)
	if err != nil {
		return err
	}
	if err := a.write(name+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return a.writeKey(name+".key", key)
}

// IssueKey makes a key that belongs to no certificate, and writes it to NAME.key.
func (a *Authority) IssueKey(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return a.writeKey(name+".key", key)
}

// writeKey writes a key in the form of SEC 1, unencrypted.
func (a *Authority) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return a.write(name, "EC PRIVATE KEY", der)
}

// write replaces a file, not atomically: a process that reads it again may meet half of it.
func (a *Authority) write(name, kind string, der []byte) error {
	raw := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(a.Path(name), raw, 0o600); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return nil
}
