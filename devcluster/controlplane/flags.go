package controlplane

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berthproject/berth/internal/test/devpki"
)

// This file is what the components are started with: certificates, flags, and which
// controllers run.

// controllers are those that a cluster without containers and without a cloud has work for.
// Left out are those of networks and attached disks (node IPAM, routes, attach and detach,
// expansion), of metrics (the horizontal pod autoscaler), of bootstrap tokens, and of APIs
// that are off by default.
var controllers = []string{
	// workloads
	"job-controller", "cronjob-controller", "replicaset-controller", "replicationcontroller-controller", "deployment-controller",
	"daemonset-controller", "statefulset-controller", "disruption-controller", "ttl-after-finished-controller", "resourceclaim-controller",
	// what namespaces and accounts get
	"namespace-controller", "serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
	"resourcequota-controller", "clusterrole-aggregation-controller", "validatingadmissionpolicy-status-controller",
	"certificatesigningrequest-approving-controller", "certificatesigningrequest-signing-controller", "certificatesigningrequest-cleaner-controller",
	// services
	"endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller", "service-cidr-controller",
	// deletion, and the health of nodes
	"garbage-collector-controller", "pod-garbage-collector-controller", "node-lifecycle-controller", "taint-eviction-controller",
	"device-taint-eviction-controller",
	// volumes
	"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
	"ephemeral-volume-controller",
}

// certificates makes a certificate for each component that serves or has a client, and
// for the admin of the kubeconfig.
func (c *Cluster) certificates(dir string) (*devpki.Authority, error) {
	p, err := devpki.New(dir, "ca")
	if err != nil {
		return nil, err
	}
	if err := p.IssueKey("sa"); err != nil {
		return nil, err
	}
	// The proxy in front of an API server says who its client is in headers; whoever has a
	// certificate of this authority is believed, so it is one of its own.
	front, err := devpki.New(dir, "front-proxy-ca")
	if err != nil {
		return nil, err
	}
	if err := front.Issue("front-proxy-client", "front-proxy-client"); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		file, cn string
		groups   []string
	}{{"etcd", "etcd", nil}, {"apiserver", "kube-apiserver", nil}, {"apiserver-etcd-client", "kube-apiserver", nil}, {"admin", "berth-devcluster-admin", []string{"system:masters"}}} {
		if err := p.Issue(x.file, x.cn, x.groups...); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func apiServerFlags(port int, etcd string, certs *devpki.Authority) []string {
	return []string{
		"--etcd-servers=" + etcd, "--etcd-cafile=" + certs.Path("ca.crt"),
		"--etcd-certfile=" + certs.Path("apiserver-etcd-client.crt"), "--etcd-keyfile=" + certs.Path("apiserver-etcd-client.key"),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + certs.Path("apiserver.crt"), "--tls-private-key-file=" + certs.Path("apiserver.key"),
		"--client-ca-file=" + certs.Path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + certs.Path("sa.key"),
		"--service-account-signing-key-file=" + certs.Path("sa.key"), "--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none",
		"--requestheader-client-ca-file=" + certs.Path("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + certs.Path("front-proxy-client.crt"), "--proxy-client-key-file=" + certs.Path("front-proxy-client.key"),
		// Where devcluster/kubelets serves, and where a real kubelet does, which asks for a certificate.
		"--kubelet-preferred-address-types=InternalDNS,InternalIP",
		"--kubelet-client-certificate=" + certs.Path("admin.crt"), "--kubelet-client-key=" + certs.Path("admin.key"),
		"--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000",
		"--event-ttl=15m", "--delete-collection-workers=16", "--profiling=false", "-v=0",
	}
}

// What a cluster with pod groups has beyond others.
const (
	// PodGroupFeatures are the feature gates of pod groups, as Berth and kube-scheduler take them, too.
	PodGroupFeatures = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"

	podGroupGates      = "--feature-gates=" + PodGroupFeatures + ",WorkloadWithJob=true"
	podGroupAPI        = "scheduling.k8s.io/v1beta1"
	podGroupController = "podgroup-protection-controller" // keeps a group whose pods exist
)

// controllerFlags returns the flags of kube-controller-manager, which runs the controllers of pod groups
// if there are any.
func (c *Cluster) controllerFlags(port int, certs *devpki.Authority, podGroups bool) []string {
	controllers := controllers
	var more []string
	if podGroups {
		controllers, more = append(slices.Clone(controllers), podGroupController), []string{podGroupGates}
	}
	return append([]string{
		"--kubeconfig=" + c.Kubeconfig, "--authentication-kubeconfig=" + c.Kubeconfig, "--authorization-kubeconfig=" + c.Kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port), "--cert-dir=" + filepath.Join(c.dir, "kcm"),
		"--controllers=" + strings.Join(controllers, ","), "--leader-elect=false",
		"--root-ca-file=" + certs.Path("ca.crt"), "--service-account-private-key-file=" + certs.Path("sa.key"),
		"--cluster-signing-cert-file=" + certs.Path("ca.crt"), "--cluster-signing-key-file=" + certs.Path("ca.key"),
		"--kube-api-qps=2000", "--kube-api-burst=4000",
		"--concurrent-job-syncs=10", "--concurrent-gc-syncs=10", "--node-monitor-grace-period=180s",
		"--profiling=false", "-v=0",
	}, more...)
}
