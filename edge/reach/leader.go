package reach

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/edge/leader"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/version"
)

// This file finds the pod of the Berth that leads: the Lease has its name in holderIdentity, and
// the rest in the labels that edge/leader writes.

// target is the pod of the Berth to query: the one that leads, unless the user names another.
type target struct {
	namespace, pod string
	port           int
	// certificate is the fingerprint of what it serves with, "" when the Lease doesn't say.
	certificate string
}

// String returns the pod as kubectl writes it.
func (l *target) String() string { return l.namespace + "/" + l.pod }

// apiClient returns the user's connection to the API server. Times of the API server are read
// from its answers: a Lease is never judged by the clock of the user's machine.
func (f *Flags) apiClient() (*rest.Config, kubernetes.Interface, *serverClock, error) {
	cfg, err := f.restConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	// The API server's audit log shows who asks.
	cfg.UserAgent = "berth/" + version.Get().Version
	clock := &serverClock{}
	timed := rest.CopyConfig(cfg)
	timed.Wrap(func(next http.RoundTripper) http.RoundTripper { return clock.reading(next) })
	client, err := kubernetes.NewForConfig(timed)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making an API client: %w", err)
	}
	return cfg, client, clock, nil
}

// Client returns the user's connection to the API server.
func (f *Flags) Client() (kubernetes.Interface, error) {
	_, client, _, err := f.apiClient()
	return client, err
}

// serverClock is the time by the API server's latest answer. It is as exact as the header Date, which has
// seconds.
type serverClock struct{ at atomic.Pointer[time.Time] }

// now returns that time, that of this machine before the first answer.
func (c *serverClock) now() time.Time {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// reading returns a transport that reads the time off each answer.
// An answer without the header changes nothing.
func (c *serverClock) reading(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil {
			if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
				c.at.Store(&at)
			}
		}
		return resp, err
	})
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// findLeader returns the pod to ask: that of --pod, or the one that holds the Lease.
// Errors say what to do, since they are the first thing that a new user sees.
func (f *Flags) findLeader(ctx context.Context, client kubernetes.Interface, clock *serverClock) (*target, error) {
	if f.Pod != "" {
		namespace, name, ok := strings.Cut(f.Pod, "/")
		if !ok || namespace == "" || name == "" {
			return nil, fmt.Errorf("--pod is %q; it must be the pod of Berth as NAMESPACE/NAME", f.Pod)
		}
		return &target{namespace: namespace, pod: name, port: cmp.Or(f.Port, observe.Port)}, nil
	}
	namespace, name, ok := strings.Cut(f.Lease, "/")
	if !ok || namespace == "" || name == "" {
		return nil, fmt.Errorf("--lease is %q; it must be the Lease as NAMESPACE/NAME", f.Lease)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if f.Shadow {
		return f.findShadow(ctx, client, namespace)
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("no Lease %s: Berth is not running here, or its Lease has another name; install Berth, "+
			"set the Lease with --lease NAMESPACE/NAME (with --mode=autoscaler kube-system/cluster-autoscaler), or the pod with --pod if it runs without leader election", f.Lease)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("not authorized to get the Lease %s, which names the leader: %w; %s", f.Lease, err, grantRole(namespace))
	case apierrors.IsUnauthorized(err):
		return nil, fmt.Errorf("the API server rejects the credentials of the kubeconfig: %w; log in again, or choose another --context", err)
	case err != nil:
		return nil, fmt.Errorf("reading the Lease %s: %w; check --kubeconfig and --context", f.Lease, err)
	}
	l, err := leaderOf(lease, clock.now())
	if err != nil {
		return nil, err
	}
	// A port that is given counts more than the Lease's.
	l.port = cmp.Or(f.Port, l.port)
	return l, nil
}

// findShadow returns the one running pod of Berth in a namespace.
func (f *Flags) findShadow(ctx context.Context, client kubernetes.Interface, namespace string) (*target, error) {
	// A service account names the namespace of its Berth.
	if f.ServiceAccount != "" {
		namespace, _, _ = strings.Cut(f.ServiceAccount, "/")
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: nameLabel + "=berth"})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("not authorized to list pods in namespace %s (403), by which the shadow is found; set its pod with --pod NAMESPACE/NAME, or its address with --server", namespace)
	case apierrors.IsUnauthorized(err):
		return nil, fmt.Errorf("the API server rejects the credentials of the kubeconfig: %w; log in again, or choose another --context", err)
	case err != nil:
		return nil, fmt.Errorf("listing pods in namespace %s: %w; check --kubeconfig and --context", namespace, err)
	}
	var names []string
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase == v1.PodRunning {
			names = append(names, p.Name)
		}
	}
	switch len(names) {
	case 0:
		return nil, fmt.Errorf("no running pod of Berth in namespace %s; name another namespace with --lease NAMESPACE/NAME, the shadow's pod with --pod, or its address with --server", namespace)
	case 1:
		return &target{namespace: namespace, pod: names[0], port: cmp.Or(f.Port, observe.Port)}, nil
	}
	return nil, fmt.Errorf("several pods of Berth run in namespace %s: %s; name the shadow's with --pod %[1]s/NAME", namespace, strings.Join(names, ", "))
}

// leaderOf returns the pod that a Lease names. An error says that nobody leads, and what to look at. The
// labels are what edge/leader writes: without them the namespace is the Lease's and the port the default
// one.
func leaderOf(lease *coordinationv1.Lease, now time.Time) (*target, error) {
	name := lease.Namespace + "/" + lease.Name
	look := fmt.Sprintf("check Berth's pods: kubectl -n %s get pods -l app.kubernetes.io/name=berth", cmp.Or(lease.Labels[leader.NamespaceLabel], lease.Namespace))
	spec := &lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return nil, noLeader{fmt.Errorf("no leader: the Lease %s has no holder; %s", name, look)}
	}
	if spec.RenewTime != nil && spec.LeaseDurationSeconds != nil {
		age, valid := now.Sub(spec.RenewTime.Time), time.Duration(*spec.LeaseDurationSeconds)*time.Second
		// Two seconds for rounding at both ends.
		if age > valid+2*time.Second { // the API server's Date has seconds
			return nil, noLeader{fmt.Errorf("no leader: the Lease of %s, %s, was last renewed %s ago and has expired (lease duration %s); %s", *spec.HolderIdentity, name, age.Round(time.Second), valid, look)}
		}
	}
	l := &target{namespace: cmp.Or(lease.Labels[leader.NamespaceLabel], lease.Namespace), port: observe.Port, certificate: lease.Labels[leader.CertificateLabel]}
	l.pod = *spec.HolderIdentity
	// Pods' names have no underscore.
	if at := strings.LastIndexByte(l.pod, '_'); at > 0 { // leader.Identity
		l.pod = l.pod[:at]
	}
	if said := lease.Labels[leader.PortLabel]; said != "" {
		port, err := strconv.Atoi(said)
		switch {
		case err != nil || port < 0 || port > 65535:
			return nil, fmt.Errorf("the Lease %s has an invalid port %q for Berth; set it with --port", name, said)
		case port == 0:
			return nil, fmt.Errorf("the leader, %s, serves no port (--secure-port=0); start it with a secure port", l)
		}
		l.port = port
	}
	return l, nil
}

// grantRole says how somebody gets what the Role berth-viewer has.
func grantRole(namespace string) string {
	return fmt.Sprintf("a cluster administrator can grant it with: kubectl -n %s create rolebinding berth-viewer-NAME --role=berth-viewer --user=NAME", namespace)
}

// grantClusterRole says how somebody gets what the ClusterRole berth-viewer has.
const grantClusterRole = "a cluster administrator can grant it with: kubectl create clusterrolebinding berth-viewer-NAME --clusterrole=berth-viewer --user=NAME"
