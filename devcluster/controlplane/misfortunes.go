package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// This file is what can be done to a running cluster: components killed and started again,
// etcd's history cut off, certificates issued anew. The methods are for one goroutine at a
// time, and not while Stop runs.

// Kill ends a component as kill -9 does. Failed doesn't deliver that end; Restart starts the
// component again.
func (c *Cluster) Kill(component string) error {
	p := c.Process(component)
	if p == nil {
		return fmt.Errorf("killing %s: no such component runs", component)
	}
	p.stopping.Store(true)
	p.Kill()
	<-p.done
	return nil
}

// Restart starts a component that was killed with what it was started with: the same
// directory, ports and files. It doesn't wait until the component serves.
func (c *Cluster) Restart(component string) error {
	i := slices.IndexFunc(c.procs, func(p *Process) bool { return p.Name == component })
	if i < 0 || !c.procs[i].Ended() {
		return fmt.Errorf("starting %s again: it wasn't killed", component)
	}
	p, err := c.StartComponent(component, c.args[component]...)
	if err != nil {
		return err
	}
	c.procs[i] = p
	c.report(p)
	return nil
}

// WaitServing returns when the API server is ready and reads from etcd again whatever pods are
// placed with; each of the two has until a limit. It is ready before it reads everything: it has a
// connection to etcd for each kind of object, and each of them waits longer after every
// attempt to connect again that failed, up to some six seconds when etcd was away for nine.
func (c *Cluster) WaitServing(ctx context.Context, limit time.Duration) error {
	if err := c.waitReady(ctx, limit); err != nil {
		return err
	}
	return c.poll(ctx, limit, "the API server did not read from etcd", readsFromEtcd)
}

// readsFromEtcd reports whether the API server finds out that there is no pod, node and Lease of
// a name that none has: what a get asks for without a version is read from etcd, not from memory.
func readsFromEtcd(ctx context.Context, client kubernetes.Interface) bool {
	const nobody, patience = "nobody-has-this-name", time.Second
	for _, get := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := client.CoreV1().Pods(v1.NamespaceDefault).Get(ctx, nobody, metav1.GetOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := client.CoreV1().Nodes().Get(ctx, nobody, metav1.GetOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := client.CoordinationV1().Leases(v1.NamespaceDefault).Get(ctx, nobody, metav1.GetOptions{})
			return err
		},
	} {
		call, cancel := context.WithTimeout(ctx, patience)
		err := get(call)
		cancel()
		if !apierrors.IsNotFound(err) {
			return false
		}
	}
	return true
}

// Compact makes etcd forget every revision before the current one, so that a watch that
// resumes at an earlier one ends with 410 wherever the API server's cache doesn't reach.
func (c *Cluster) Compact(ctx context.Context) error {
	info := transport.TLSInfo{CertFile: c.certs.Path("etcd.crt"), KeyFile: c.certs.Path("etcd.key"), TrustedCAFile: c.certs.Path("ca.crt")}
	tls, err := info.ClientConfig()
	if err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.etcd}, TLS: tls, DialTimeout: 5 * time.Second, Context: ctx})
	if err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	defer client.Close()
	now, err := client.Get(ctx, "compact_rev_key")
	if err != nil {
		return fmt.Errorf("reading etcd's revision: %w", err)
	}
	if _, err := client.Compact(ctx, now.Header.Revision); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	return nil
}

// IssueClient writes a certificate for a user, valid for a time from now on, to files of a
// name, over those that an earlier call has written: a client that reads its files again
// has rotated its certificate.
func (c *Cluster) IssueClient(name, user string, valid time.Duration, groups ...string) error {
	return c.certs.IssueFor(valid, name, user, groups...)
}

// Credentials are the paths of a client's certificate and key, and of the authority that
// signs the API server's certificate.
type Credentials struct{ Cert, Key, CA string }

// ClientFiles returns where IssueClient writes what has a name.
func (c *Cluster) ClientFiles(name string) Credentials {
	return Credentials{c.certs.Path(name + ".crt"), c.certs.Path(name + ".key"), c.certs.Path("ca.crt")}
}

// IssueServing replaces the API server's serving certificate by one that is valid for a time
// from now on. The API server notices and serves with it.
func (c *Cluster) IssueServing(valid time.Duration) error {
	return c.certs.IssueFor(valid, "apiserver", "kube-apiserver")
}
