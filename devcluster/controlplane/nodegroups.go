package controlplane

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/internal/test/devpki"
)

// NodeGroups is a process that serves node groups over the externalgrpc protocol, with mutual TLS.
type NodeGroups struct {
	*Process
	Address string // host:port, on loopback
	// Timeout is how long Berth waits for the answer to a call, by Flags; 0 for Berth's default.
	Timeout time.Duration
	certs   *devpki.Authority
	dir     string
}

// ServeNodeGroups starts a process that serves the node groups of a file, whose nodes it makes in
// the cluster. Certificates, configurations of clients and the log are in a directory, which must
// exist.
func (c *Cluster) ServeNodeGroups(berth, groups, dir string) (*NodeGroups, error) {
	certs, err := devpki.New(filepath.Join(dir, "provider-pki"), "ca")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"server", "client"} {
		if err := certs.Issue(name, "berth-"+name); err != nil {
			return nil, err
		}
	}
	free, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	g := &NodeGroups{Address: "127.0.0.1:" + strconv.Itoa(free[0]), certs: certs, dir: dir}
	g.Process, err = StartProcess("node groups", filepath.Join(dir, "node-groups.log"), berth, "provider", "simulated", "--listen", g.Address, "--kubeconfig", c.Kubeconfig, "--cloud-config", groups,
		"--tls-cert-file", certs.Path("server.crt"), "--tls-private-key-file", certs.Path("server.key"), "--client-ca-file", certs.Path("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("starting the node groups: %w", err)
	}
	return g, nil
}

// Flags returns those by which berth run gets its nodes there, at an address: the process's own or
// that of a proxy before it.
func (g *NodeGroups) Flags(address string) ([]string, error) {
	config := map[string]string{"address": address, "cert": g.certs.Path("client.crt"), "key": g.certs.Path("client.key"), "cacert": g.certs.Path("ca.crt")}
	if g.Timeout > 0 {
		config["grpc_timeout"] = g.Timeout.String()
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(g.dir, "external-provider-"+port+".yaml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return nil, fmt.Errorf("writing the provider's configuration: %w", err)
	}
	return []string{"--cloud-provider=externalgrpc", "--cloud-config=" + file}, nil
}
