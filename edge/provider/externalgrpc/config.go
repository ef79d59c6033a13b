package externalgrpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// DefaultTimeout is how long a call may take by default; as with Cluster Autoscaler.
	DefaultTimeout = 5 * time.Second
	// maxMessage is how large an answer may be: a group of 100,000 instances fits.
	maxMessage = 128 << 20 // bytes
	// maxReconnect is the longest pause before another try to connect: a server that comes back
	// is noticed by the next reading of the groups.
	maxReconnect = 5 * time.Second
)

// Config says where the server is, and who the client is. Keys are those of Cluster Autoscaler's
// file.
type Config struct {
	Address string `json:"address"` // host:port, or unix:// and the path of a socket
	// Cert and Key are the paths of the client's certificate and its key, CACert that of the
	// authority of the server's certificate. Without any of them the connection isn't encrypted.
	Cert    string           `json:"cert,omitempty"`
	Key     string           `json:"key,omitempty"`
	CACert  string           `json:"cacert,omitempty"`
	Timeout *metav1.Duration `json:"grpc_timeout,omitempty"` // of one call; DefaultTimeout when left out
}

// LoadConfig reads a configuration file. Its errors name the file, the key, the value and what
// would be accepted. unknown names a key that means nothing, "" when there is none: Cluster
// Autoscaler takes no offence at one.
func LoadConfig(path string) (c *Config, unknown string, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("--cloud-config: %w; it must be the path of a file with the keys address, cert, key and cacert", err)
	}
	c = &Config{}
	if err := yaml.Unmarshal(raw, c); err != nil {
		return nil, "", fmt.Errorf("--cloud-config %s: %w; it must be YAML with the keys address, cert, key, cacert and grpc_timeout", path, err)
	}
	if err := yaml.UnmarshalStrict(raw, &Config{}); err != nil {
		unknown = err.Error()
	}
	if err := c.Validate(); err != nil {
		return nil, "", fmt.Errorf("--cloud-config %s: %w", path, err)
	}
	return c, unknown, nil
}

// Validate names what is wrong with a configuration: a value, or a file that it names.
func (c *Config) Validate() error {
	if err := checkAddress(c.Address); err != nil {
		return fmt.Errorf("address is %q; %w", c.Address, err)
	}
	if c.Timeout != nil && c.Timeout.Duration <= 0 {
		return fmt.Errorf("grpc_timeout is %s; it must be greater than 0, such as 5s", c.Timeout.Duration)
	}
	_, err := c.credentials()
	return err
}

// Private reports whether nobody can listen in: the connection is encrypted, or is a socket of this machine.
func (c *Config) Private() bool {
	_, socket := socketOf(c.Address)
	return socket || c.Cert != ""
}

func (c *Config) timeout() time.Duration {
	if c.Timeout == nil {
		return DefaultTimeout
	}
	return c.Timeout.Duration
}

// credentials returns what the connection is encrypted with. The certificate is read again for
// each connection: one that was renewed counts without a restart.
func (c *Config) credentials() (credentials.TransportCredentials, error) {
	if c.Cert == "" && c.Key == "" && c.CACert == "" {
		return insecure.NewCredentials(), nil
	}
	for _, x := range []struct{ key, path string }{{"cert", c.Cert}, {"key", c.Key}, {"cacert", c.CACert}} {
		if x.path == "" {
			return nil, fmt.Errorf("%s is missing; cert, key and cacert go together: set all three, or none for an unencrypted connection", x.key)
		}
	}
	if _, err := loadPair("cert", c.Cert, "key", c.Key); err != nil {
		return nil, err
	}
	roots, err := loadAuthorities("cacert", c.CACert)
	if err != nil {
		return nil, err
	}
	host := "localhost"
	if _, socket := socketOf(c.Address); !socket {
		if host, _, err = net.SplitHostPort(c.Address); err != nil {
			return nil, err
		}
	}
	return credentials.NewTLS(&tls.Config{
		ServerName: host, RootCAs: roots,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return loadPair("cert", c.Cert, "key", c.Key)
		},
	}), nil
}

// dial returns a connection that is made when it is first needed, and again when it was lost.
func (c *Config) dial() (*grpc.ClientConn, error) {
	secured, err := c.credentials()
	if err != nil {
		return nil, err
	}
	pauses := backoff.DefaultConfig
	pauses.MaxDelay = maxReconnect
	// The address goes to the dialer as it is, with its zone, if it has one. grpc knows sockets.
	target := c.Address
	if _, socket := socketOf(target); !socket {
		target = "passthrough:///" + target
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(secured),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: c.timeout()}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("address is %q: %w; it must be host:port", c.Address, err)
	}
	return conn, nil
}

// ServerTLS are the files that a server's connections are encrypted with: all of them or none.
type ServerTLS struct {
	Cert, Key string // of the server
	// ClientCA are the authorities of the clients' certificates, without which none is served.
	ClientCA string
}

// MayListen refuses an address of --listen. Without TLS the protocol knows no client from another, so that only this
// machine may call.
func (s ServerTLS) MayListen(address string) error {
	if _, socket := socketOf(address); socket {
		if err := checkAddress(address); err != nil {
			return fmt.Errorf("--listen is %q; %w", address, err)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("--listen is %q; it must be host:port, or %s and the absolute path of a socket", address, socketPrefix)
	}
	if ip := net.ParseIP(host); s == (ServerTLS{}) && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen is %q, and anyone who can reach it could remove nodes; set --tls-cert-file, --tls-private-key-file and --client-ca-file, or listen on 127.0.0.1", address)
	}
	return nil
}

// Validate names what is wrong with the files.
func (s ServerTLS) Validate() error {
	_, err := s.credentials()
	return err
}

// credentials returns what a server's connections are encrypted with.
func (s ServerTLS) credentials() (credentials.TransportCredentials, error) {
	if s == (ServerTLS{}) {
		return insecure.NewCredentials(), nil
	}
	if s.Cert == "" || s.Key == "" || s.ClientCA == "" {
		return nil, errors.New("--tls-cert-file, --tls-private-key-file and --client-ca-file go together; set all three, or none for unencrypted connections")
	}
	if _, err := loadPair("--tls-cert-file", s.Cert, "--tls-private-key-file", s.Key); err != nil {
		return nil, err
	}
	clients, err := loadAuthorities("--client-ca-file", s.ClientCA)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return loadPair("--tls-cert-file", s.Cert, "--tls-private-key-file", s.Key)
		},
	}), nil
}

// loadPair reads a certificate and its key, each by the name of what names its file.
func loadPair(certName, cert, keyName, key string) (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(cert)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it must be the path of a PEM file with a certificate", certName, err)
	}
	keyPEM, err := os.ReadFile(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it must be the path of a PEM file with the certificate's key", keyName, err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s %s and %s %s: %w; they must be PEM files with a certificate and the key that belongs to it", certName, cert, keyName, key, err)
	}
	return &pair, nil
}

// loadAuthorities reads the certificates of authorities, by the name of what names their file.
func loadAuthorities(name, path string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it must be the path of a PEM file with CA certificates", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s %s has no certificate; it must be a PEM file with CA certificates", name, path)
	}
	return pool, nil
}
