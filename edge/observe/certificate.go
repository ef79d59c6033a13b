package observe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/keyutil"
)

// ownCertificateAge is how long a certificate that is made at the start is valid; kube-scheduler's.
const ownCertificateAge = 365 * 24 * time.Hour

// ownName is the subject of a certificate that Berth makes itself.
const ownName = "berth"

// MadeByBerth reports whether a certificate looks like one that an instance of Berth has made itself. Anybody can make one
// that does: it vouches for nothing, and tells an instance that stands by from a server that isn't Berth.
func MadeByBerth(c *x509.Certificate) bool {
	return c.Subject.CommonName == ownName && c.Issuer.CommonName == ownName
}

// ensureCertificate makes the certificate that the server serves with, unless flags name one, or a
// directory where one is kept. A certificate of its own changes with each start: clients
// learn it from the Lease (edge/leader) and not from an authority.
func (s *Serving) ensureCertificate() (err error) {
	local := net.IPv4(127, 0, 0, 1)
	if c := s.secure.ServerCert; c.CertKey.CertFile != "" || c.CertKey.KeyFile != "" || c.CertDirectory != "" {
		return s.secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{local})
	}
	ips := []net.IP{local}
	if bind := s.secure.BindAddress; !bind.IsUnspecified() && !bind.Equal(local) {
		ips = append(ips, bind)
	}
	chain, key, err := selfSigned(time.Now(), ips)
	if err != nil {
		return err
	}
	s.secure.ServerCert.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("self-signed at startup", chain, key)
	return err
}

// selfSigned makes a certificate for localhost and these addresses, which nobody but itself has
// signed, and its key, both as PEM. The key is of the curve P-256: making RSA keys, as the library
// of the API server does, takes up to a second of CPU time, and Berth binds nothing before it
// serves.
func selfSigned(now time.Time, ips []net.IP) (certificate, privateKey []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: ownName},
		DNSNames:              []string{"localhost"},
		IPAddresses:           ips,
		NotBefore:             now.Add(-time.Hour), // for whoever's clock is slow
		NotAfter:              now.Add(ownCertificateAge),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	if privateKey, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), privateKey, nil
}

// OwnCertificate returns the certificate that the server has made itself, in DER; nil before Run,
// and when it serves with one from a file.
func (s *Serving) OwnCertificate() []byte {
	if s.secure.ServerCert.GeneratedCert == nil {
		return nil
	}
	chain, _ := s.secure.ServerCert.GeneratedCert.CurrentCertKeyContent()
	block, _ := pem.Decode(chain)
	if block == nil {
		return nil
	}
	return block.Bytes
}
