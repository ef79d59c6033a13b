package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// Deploy creates what deploy/rbac.yaml has, a file of which the path is given, and lets
// Berth's service account use the simulated provider: Berth may do then what it may do where
// it is deployed, and no more.
func Deploy(ctx context.Context, client kubernetes.Interface, rbac string) error {
	raw, err := os.ReadFile(rbac)
	if err != nil {
		return fmt.Errorf("reading Berth's roles: %w", err)
	}
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", rbac, err)
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			return fmt.Errorf("reading %s: %w\n%s", rbac, err, doc)
		}
		if err := create(ctx, client, obj); err != nil {
			return err
		}
	}
	return create(ctx, client, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "berth-simulated-provider"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "berth-simulated-provider"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: "berth"}}})
}

// create creates an object of deploy/rbac.yaml.
func create(ctx context.Context, client kubernetes.Interface, obj any) (err error) {
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
		err = fmt.Errorf("creating Berth's roles: no client for %T", obj)
	}
	return err
}
