package reach

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// This file checks that the pod a Lease names is Berth's before the user's credentials go there.
// The Lease alone can't vouch for that: many controllers may update every Lease of kube-system, and
// so could have a user's token sent to a pod of their own. What must hold: the API server shows that
// the pod runs under Berth's service account, in the namespace of the Lease unless the user names
// another.

// The labels of the chart by which Berth's pods are known.
const (
	nameLabel     = "app.kubernetes.io/name"
	instanceLabel = "app.kubernetes.io/instance"
)

// account is a service account.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

// berthsAccount returns the service account that Berth's pods must run under by --service-account,
// and the namespace of the Lease with an empty name when that isn't given.
func (f *Flags) berthsAccount() (account, error) {
	if f.ServiceAccount == "" {
		namespace, _, _ := strings.Cut(f.Lease, "/")
		return account{namespace: namespace}, nil
	}
	namespace, name, ok := strings.Cut(f.ServiceAccount, "/")
	if !ok || namespace == "" || name == "" {
		return account{}, fmt.Errorf("--service-account is %q; it must be the service account of Berth's pods as NAMESPACE/NAME", f.ServiceAccount)
	}
	return account{namespace, name}, nil
}

// vouchForPod returns an error unless the API server shows that the pod which the Lease names is one
// of Berth's.
func (f *Flags) vouchForPod(ctx context.Context, client kubernetes.Interface, l *target) error {
	want, err := f.berthsAccount()
	if err != nil {
		return err
	}
	if l.namespace != want.namespace {
		return fmt.Errorf("the Lease %s names pod %s as the leader, which is not in namespace %s: no credentials are sent there, since whoever may update the Lease could name any pod; "+
			"if Berth runs in namespace %s, name its service account with --service-account %[4]s/NAME", f.Lease, l, want.namespace, l.namespace)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	pod, err := client.CoreV1().Pods(l.namespace).Get(ctx, l.pod, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("not authorized to get Berth's pod %s: %w; %s", l, err, grantRole(l.namespace))
	case apierrors.IsNotFound(err):
		return l.unreachable(err)
	case err != nil:
		return fmt.Errorf("reading pod %s: %w", l, err)
	}
	return f.vouchedPod(pod, want)
}

// vouchedPod returns an error unless a pod runs under a service account. That of an empty name is
// the one that the chart gives the pods of its release.
func (f *Flags) vouchedPod(pod *v1.Pod, want account) error {
	runs := cmp.Or(pod.Spec.ServiceAccountName, "default")
	if want.name == "" {
		if pod.Labels[nameLabel] != "berth" {
			return fmt.Errorf("pod %s/%s, which the Lease %s names as the leader, has no label %s=berth: no credentials are sent there; "+
				"if it is Berth's, name its service account with --service-account %[1]s/%[5]s, or the pod with --pod", pod.Namespace, pod.Name, f.Lease, nameLabel, runs)
		}
		want.name = chartName(pod.Labels[instanceLabel])
	}
	if runs != want.name {
		return fmt.Errorf("pod %s/%s, which the Lease %s names as the leader, runs under the service account %s, and Berth's is %s: no credentials are sent there; "+
			"if it is Berth's, name its service account with --service-account %[1]s/%[4]s, or the pod with --pod", pod.Namespace, pod.Name, f.Lease, runs, want.name)
	}
	return nil
}

// chartName returns what the chart calls the objects of a release (deploy/chart/templates/_helpers.tpl).
func chartName(release string) string {
	limit, suffix := 40, ""
	if !strings.Contains(release, "berth") {
		limit, suffix = 34, "-berth"
	}
	return strings.TrimSuffix(release[:min(len(release), limit)], "-") + suffix
}
