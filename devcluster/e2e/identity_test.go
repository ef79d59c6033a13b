package e2e

import (
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has Berth run as it is deployed: by the service account of deploy/rbac.yaml,
// which may do what that file lets it and no more.

// asDeployed applies deploy/rbac.yaml, and returns a kubeconfig file of its service account,
// which may use the simulated provider.
func asDeployed(t *testing.T, c *controlplane.Cluster, client kubernetes.Interface) string {
	t.Helper()
	ctx := t.Context()
	if err := api.Deploy(ctx, client, filepath.Join("..", "..", "deploy", "rbac.yaml")); err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(ctx, "berth", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"dev": {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData, CertificateAuthority: c.Config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"berth": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"berth": {Cluster: "dev", AuthInfo: "berth"}},
		CurrentContext: "berth",
	}, path); err != nil {
		t.Fatal(err)
	}
	return path
}
