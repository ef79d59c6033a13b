package reach

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/edge/leader"
)

// leaseAPI is the API server of a cluster with a Lease and a pod. It notes who wants to open a
// port-forward, and lets nobody.
type leaseAPI struct {
	objects    map[string]runtime.Object // by path
	forwarding atomic.Int64
}

func (a *leaseAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/portforward") {
		a.forwarding.Add(1)
	}
	o := a.objects[r.URL.Path]
	if o == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = scheme.Codecs.LegacyCodec(coordinationv1.SchemeGroupVersion, v1.SchemeGroupVersion).Encode(o, w)
}

// kubeconfigOf writes a kubeconfig for an API server, and returns its path.
func kubeconfigOf(t *testing.T, api *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: api.URL, CertificateAuthorityData: certificateOf(api)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"me": {Token: "secret"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "me"}},
		CurrentContext: "c",
	}, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// openTo opens a connection to the pod p of a cluster whose Lease says that p is in a namespace, ""
// for nothing. It returns the error, and whether a port-forward to the pod was asked for.
func openTo(t *testing.T, flags *Flags, namespace, account string, labels map[string]string) (opened bool, _ error) {
	holder, seconds, now := "p_1", int32(15), metav1.NewMicroTime(time.Now())
	in := cmp.Or(namespace, "kube-system")
	api := &leaseAPI{objects: map[string]runtime.Object{
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/berth": &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "berth", Labels: map[string]string{leader.NamespaceLabel: namespace, leader.CertificateLabel: "of-an-attacker"}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}},
		"/api/v1/namespaces/" + in + "/pods/p": &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "p", Labels: labels}, Spec: v1.PodSpec{ServiceAccountName: account}},
	}}
	server := httptest.NewTLSServer(api)
	defer server.Close()
	flags.Kubeconfig, flags.Lease = kubeconfigOf(t, server), "kube-system/berth"
	_, err := flags.Open(context.Background())
	return api.forwarding.Load() > 0, err
}

// TestCredentialsGoToBerthsPod has a Lease name pods that somebody who may update it could name:
// no connection is opened to a pod that the API server doesn't show as Berth's.
func TestCredentialsGoToBerthsPod(t *testing.T) {
	berths := map[string]string{nameLabel: "berth", instanceLabel: "berth"}
	for _, x := range []struct {
		name    string
		flags   Flags
		in      string // namespace in the Lease
		account string
		labels  map[string]string
		want    string // part of the error; "" when the connection is opened
	}{
		{"Berth's pod", Flags{}, "kube-system", "berth", berths, ""},
		{"no namespace in the Lease", Flags{}, "", "berth", berths, ""},
		{"of another release", Flags{}, "kube-system", "prod-berth", map[string]string{nameLabel: "berth", instanceLabel: "prod"}, ""},
		{"a foreign namespace", Flags{}, "tenant", "berth", berths, "names pod tenant/p as the leader, which is not in namespace kube-system: no credentials are sent there"},
		{"a namespace that the user names", Flags{ServiceAccount: "own/berth"}, "own", "berth", nil, ""},
		{"another than the user names", Flags{ServiceAccount: "own/berth"}, "kube-system", "berth", berths, "is not in namespace own"},
		{"a foreign service account", Flags{}, "kube-system", "csi-driver", berths, "runs under the service account csi-driver, and Berth's is berth"},
		{"the default service account", Flags{}, "kube-system", "", berths, "runs under the service account default"},
		{"a pod without Berth's labels", Flags{}, "kube-system", "berth", nil, "has no label app.kubernetes.io/name=berth"},
		{"a service account that the user names", Flags{ServiceAccount: "kube-system/csi-driver"}, "kube-system", "csi-driver", nil, ""},
		{"another service account than the user names", Flags{ServiceAccount: "kube-system/b"}, "kube-system", "berth", berths, "and Berth's is b"},
		{"a service account without a namespace", Flags{ServiceAccount: "berth"}, "kube-system", "berth", berths, `--service-account is "berth"`},
		{"the pod that the user names", Flags{Pod: "tenant/p"}, "elsewhere", "any", nil, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			opened, err := openTo(t, &x.flags, x.in, x.account, x.labels)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("opening a connection: %v\nwant …%s…", err, x.want)
			}
			if opened != (x.want == "") {
				t.Errorf("a port-forward was asked for: %v, want %v", opened, x.want == "")
			}
		})
	}
}

// TestNameOfTheChart has names of releases as deploy/charttest renders them.
func TestNameOfTheChart(t *testing.T) {
	for release, want := range map[string]string{
		"berth": "berth", "my-berth": "my-berth", "prod": "prod-berth",
		strings.Repeat("a", 33) + "-b":                   strings.Repeat("a", 33) + "-berth",
		"berth-" + strings.Repeat("a", 33) + "-and-more": "berth-" + strings.Repeat("a", 33),
	} {
		if got := chartName(release); got != want {
			t.Errorf("the chart's objects of release %q are called %q, want %q", release, got, want)
		}
	}
}
