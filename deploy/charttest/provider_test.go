package charttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// groupsOfProvider are the node groups of the provider in the pod.
const groupsOfProvider = `apiVersion: berth.dev/v1alpha1
kind: SimulatedNodeGroups
groups:
- {name: workers, max: 10, launchDelay: {min: 1s, max: 1s}, startup: {min: 1s, max: 1s}, template: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}}
`

// certificateFor returns a certificate for a host with its key, as a server and as a client. It is its own
// authority.
func certificateFor(t *testing.T, host string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	der, err := x509.MarshalECPrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// TestProviderInThePod installs the chart with a provider that runs beside Berth, and runs the containers of the pod in
// their order: the provider, the check, and Berth, which has the provider buy a node for a pod. Provider and Berth
// know each other by the certificate that both mount.
func TestProviderInThePod(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	eventually(t, "kube-system", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return err == nil
	})
	certificate, key := certificateFor(t, "localhost")
	_, err := c.client.CoreV1().Secrets(namespace).Create(ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "provider-tls"}, Data: map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.client.CoreV1().ConfigMaps(namespace).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "groups"}, Data: map[string]string{"groups.yaml": groupsOfProvider}}, metav1.CreateOptions{})
	must(t, err)
	// The simulated provider makes nodes of the API, where one of a cloud makes instances.
	_, err = c.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "provider"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "berth", Namespace: namespace}}}, metav1.CreateOptions{})
	must(t, err)

	port, own := freePort(t), freePort(t)
	must(t, c.install(map[string]any{
		"flags": map[string]any{"secure-port": float64(own), "bind-address": "127.0.0.1", "scan-interval": "1s"},
		"provider": map[string]any{
			"image": map[string]any{"repository": "ghcr.io/berthproject/berth", "tag": "test"}, "port": float64(port), "check": true, "serviceAccountToken": true,
			"args": []any{"provider", "simulated", fmt.Sprint("--listen=localhost:", port), "--cloud-config=/etc/groups/groups.yaml",
				"--tls-cert-file=/etc/berth-provider/tls.crt", "--tls-private-key-file=/etc/berth-provider/tls.key", "--client-ca-file=/etc/berth-provider/ca.crt"},
			"tls": map[string]any{"secretName": "provider-tls"}, "volumeMounts": []any{map[string]any{"name": "groups", "mountPath": "/etc/groups"}},
		},
		"extraVolumes": []any{map[string]any{"name": "groups", "configMap": map[string]any{"name": "groups"}}},
	}))
	pod := c.podOf("berth")
	if len(pod.InitContainers) != 2 || pod.InitContainers[0].Name != "provider" || ptr.Deref(pod.InitContainers[0].RestartPolicy, "") != v1.ContainerRestartPolicyAlways || pod.InitContainers[1].RestartPolicy != nil {
		t.Fatalf("the pods have the init containers %+v, want a provider that goes on running, and a check that ends", pod.InitContainers)
	}
	// Before there is a provider the check fails, as for one that can't serve.
	check := c.run(pod, &pod.InitContainers[1])
	if err := <-check.ended; err == nil {
		t.Errorf("without a provider the check succeeds:\n%s", check.said())
	}
	c.run(pod, &pod.InitContainers[0])
	eventually(t, "the check to succeed", func(context.Context) bool {
		check := c.run(pod, &pod.InitContainers[1])
		return <-check.ended == nil && strings.Contains(check.said(), "1 groups")
	})
	berth := c.runContainer("berth")
	create(t, c, "first")
	eventually(t, "a pod on a node that the provider has made for it", func(ctx context.Context) bool { return strings.HasPrefix(on(ctx, c, "first"), "workers-") })
	must(t, berth.stop())
}

// TestProviderHasNoTokenUnlessItAsks: the provider's container has an empty volume where Berth's has the token of its
// account.
func TestProviderHasNoTokenUnlessItAsks(t *testing.T) {
	for _, asks := range []bool{false, true} {
		v := map[string]any{"provider": map[string]any{"image": map[string]any{"repository": "provider", "tag": "v1"}, "serviceAccountToken": asks}}
		pod := as[appsv1.Deployment](t, byID(rendered(t, v))["Deployment kube-system/berth"]).Spec.Template.Spec
		hidden := false
		for _, m := range pod.InitContainers[0].VolumeMounts {
			hidden = hidden || m.MountPath == serviceAccount
		}
		if hidden == asks {
			t.Errorf("with serviceAccountToken %t the token is hidden from the provider: %t", asks, hidden)
		}
		if args := pod.Containers[0].Args; !slices.Contains(args, "--cloud-provider=externalgrpc") || !slices.Contains(args, "--cloud-config=/etc/berth/cloud.yaml") {
			t.Errorf("Berth runs with %q", args)
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.MountPath == serviceAccount {
				t.Error("Berth's own token is hidden")
			}
		}
	}
}
