// Package account makes Berth run on a dev cluster as it is deployed: by a ServiceAccount that
// may do what deploy/ lets it, and no more. What it asks of the API server can be compared with
// that (rights.go).
//
//	account.go        the accounts, and how they come to a cluster
//	kustomization.go  what deploy/ says, read without kustomize
//	rights.go         what accounts may do, and what they have asked for
//
// A right that is missing in deploy/ shows as an error of whatever test needs it; one that is there for
// nothing shows in the comparison (Unused).
package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Name is the ServiceAccount's in the kustomizations; on a cluster that of a configuration
// has the configuration's name behind it.
const Name = "berth"

// Namespace is where the ServiceAccounts are.
const Namespace = metav1.NamespaceSystem

// userPrefix is what the API server calls the ServiceAccount of a configuration, without the
// configuration's name at the end.
const userPrefix = "system:serviceaccount:" + Namespace + ":" + Name + "-"

// Configurations are the kustomizations of deploy/ with rights of their own. Each has a folder there.
var Configurations = []string{"base", "clusterapi", "external", "simulated", "surge", "swap", "autoscaler", "shadow", "shadow-nodes"}

// ConfigurationFor returns which of them has the rights for Berth with some flags. The first that
// applies counts, so those that may do more, or less, come before the provider's.
func ConfigurationFor(flags []string) string {
	joined := " " + strings.ReplaceAll(strings.Join(flags, " "), "=", " ") + " "
	switch {
	case strings.Contains(joined, " --shadow ") && strings.Contains(joined, " --cloud-provider "):
		return "shadow-nodes"
	case strings.Contains(joined, " --shadow "):
		return "shadow"
	case strings.Contains(joined, " --mode autoscaler "):
		return "autoscaler"
	case strings.Contains(joined, " --leader-elect-resource-name kube-scheduler "):
		return "swap"
	case strings.Contains(joined, " --surge "):
		return "surge"
	case strings.Contains(joined, " --cloud-provider simulated "):
		return "simulated"
	case strings.Contains(joined, " --cloud-provider clusterapi "):
		return "clusterapi"
	case strings.Contains(joined, " --cloud-provider externalgrpc "):
		return "external"
	}
	return "base"
}

// User returns whom the API server takes the ServiceAccount of a configuration for.
func User(configuration string) string { return userPrefix + configuration }

// Deploy creates the ServiceAccount and the rights of a configuration, unless they are there.
// Each configuration has a ServiceAccount of its own: what one lets it do, another one doesn't
// get on the same cluster.
func Deploy(ctx context.Context, client kubernetes.Interface, configuration string) error {
	objects, err := Objects(configuration)
	if err != nil {
		return err
	}
	created := false
	for _, o := range objects {
		err := create(ctx, client, o)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the account of Berth: %w", err)
		}
		created = created || err == nil
	}
	if !created {
		return nil
	}
	return awaitRights(ctx, client, User(configuration), Rights(objects))
}

// Create deploys a configuration and writes a kubeconfig file of its ServiceAccount. The token in it is
// valid as long as the API server makes tokens by default, which is an hour.
func Create(ctx context.Context, cluster *rest.Config, configuration, path string) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return err
	}
	if err := Deploy(ctx, client, configuration); err != nil {
		return err
	}
	token, err := client.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, Name+"-"+configuration, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a token of Berth's account: %w", err)
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"dev": {Server: cluster.Host, CertificateAuthorityData: cluster.CAData, CertificateAuthority: cluster.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{Name: {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{Name: {Cluster: "dev", AuthInfo: Name}},
		CurrentContext: Name,
	}, path)
}

// awaitRights returns when the API server knows all rights: it learns of them a moment after the objects
// were created. It asks as an administrator, so the account itself needs no right for that.
func awaitRights(ctx context.Context, client kubernetes.Interface, user string, rights []Right) error {
	rights = append(slices.Clone(rights), Right{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"})
	for _, r := range rights {
		if r.Verb == useRole {
			continue
		}
		resource, subresource, _ := strings.Cut(r.Resource, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: subresource, Namespace: r.Namespace, Name: r.Name}}}
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("waiting until %s may %s: %w", user, r, err)
		}
	}
	return nil
}

// Objects returns the ServiceAccount of a configuration and what gives it rights, with the
// configuration's name behind the names of all of them. The rest of what is deployed isn't
// among them: there is nothing on a dev cluster that runs containers.
func Objects(configuration string) ([]runtime.Object, error) {
	out, err := build(configuration)
	if err != nil {
		return nil, err
	}
	rename(out, "-"+configuration)
	return out, nil
}

// rename puts a suffix behind the names of objects, and where they refer to each other.
func rename(objects []runtime.Object, suffix string) {
	roleRef := func(r *rbacv1.RoleRef) {
		if strings.HasPrefix(r.Name, Name+"-") { // others are the cluster's own
			r.Name += suffix
		}
	}
	subjects := func(s []rbacv1.Subject) {
		for i := range s {
			s[i].Name += suffix
		}
	}
	for _, o := range objects {
		m := o.(metav1.Object)
		m.SetName(m.GetName() + suffix)
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			roleRef(&o.RoleRef)
			subjects(o.Subjects)
		case *rbacv1.RoleBinding:
			roleRef(&o.RoleRef)
			subjects(o.Subjects)
		}
	}
}

// create creates an object of one of the kinds that read lets through.
func create(ctx context.Context, client kubernetes.Interface, obj runtime.Object) (err error) {
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
		err = fmt.Errorf("no client for %T", obj)
	}
	return err
}

// accountOf returns the configuration whose ServiceAccount a user is.
func accountOf(user string) (configuration string, ok bool) {
	configuration, ok = strings.CutPrefix(user, userPrefix)
	return configuration, ok && slices.Contains(Configurations, configuration)
}
