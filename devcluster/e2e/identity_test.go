package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file has Berth run as it is deployed: by the service account of deploy/rbac.yaml,
// which may do what that file lets it and no more.

// asDeployed applies deploy/rbac.yaml, and returns a kubeconfig file of its service account,
// which may use the simulated provider.
func asDeployed(t *testing.T, c *controlplane.Cluster, client kubernetes.Interface) string {
	t.Helper()
	ctx := t.Context()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("reading deploy/rbac.yaml: %v\n%s", err, doc)
		}
		if err := apply(ctx, client, obj); err != nil {
			t.Fatal(err)
		}
	}
	provider := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "berth-simulated-provider"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "berth-simulated-provider"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: "berth"}}}
	if err := apply(ctx, client, provider); err != nil {
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

// apply creates an object of deploy/rbac.yaml.
func apply(ctx context.Context, client kubernetes.Interface, obj any) (err error) {
	how := metav1.CreateOptions{}
	switch o := obj.(type) {
	case *v1.ServiceAccount:
		_, err = client.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, how)
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, o, how)
	case *rbacv1.Role:
		_, err = client.RbacV1().Roles(o.Namespace).Create(ctx, o, how)
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, o, how)
	case *rbacv1.RoleBinding:
		_, err = client.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, how)
	default:
		err = fmt.Errorf("applying deploy/rbac.yaml: no client for %T", obj)
	}
	return err
}
