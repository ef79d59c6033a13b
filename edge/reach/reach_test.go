package reach

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"

	"github.com/berthproject/berth/edge/leader"
)

// This file specifies how the leader is found and what is said when it isn't. The way to its pod
// is tested on a cluster (devcluster/e2e, TestKubectlBerth).

// TestLeaderOfALease has a Lease for each way to be held, or not.
func TestLeaderOfALease(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, x := range []struct {
		name   string
		holder string
		age    time.Duration
		labels map[string]string
		want   string // the pod with its port and certificate, or a part of the error
	}{
		{"as Berth writes it", "berth-7d-x_0b5c", time.Second, map[string]string{leader.NamespaceLabel: "berth", leader.PortLabel: "10300", leader.CertificateLabel: "ab12"}, "berth/berth-7d-x:10300 ab12"},
		{"without labels", "berth-7d-x_0b5c", time.Second, nil, "kube-system/berth-7d-x:10259 "},
		{"by a Berth that runs in no pod", "host_0b5c", time.Second, map[string]string{leader.NamespaceLabel: "", leader.PortLabel: "10300", leader.CertificateLabel: ""}, "kube-system/host:10300 "},
		{"by a name with underscores", "my_host_0b5c", time.Second, nil, "kube-system/my_host:10259 "},
		{"at its end", "berth-7d-x_0b5c", 15 * time.Second, nil, "kube-system/berth-7d-x:10259 "},
		{"run out", "berth-7d-x_0b5c", 3 * time.Minute, map[string]string{leader.NamespaceLabel: "berth"}, "no leader: the Lease of berth-7d-x_0b5c, kube-system/berth, was last renewed 3m0s ago and has expired (lease duration 15s); check Berth's pods: kubectl -n berth get pods"},
		{"by nobody", "", time.Second, nil, "no leader: the Lease kube-system/berth has no holder"},
		{"by one that serves nothing", "berth-7d-x_0b5c", time.Second, map[string]string{leader.PortLabel: "0"}, "serves no port (--secure-port=0)"},
		{"with a port that is none", "berth-7d-x_0b5c", time.Second, map[string]string{leader.PortLabel: "https"}, `has an invalid port "https" for Berth; set it with --port`},
	} {
		seconds, renewed := int32(15), metav1.NewMicroTime(now.Add(-x.age))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "berth", Labels: x.labels},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &x.holder, RenewTime: &renewed, LeaseDurationSeconds: &seconds}}
		l, err := leaderOf(lease, now)
		switch {
		case NoLeader(err) != strings.HasPrefix(x.want, "no leader"):
			t.Errorf("held %s: %v: that waiting ends it is %t", x.name, err, NoLeader(err))
		case err != nil && !strings.Contains(err.Error(), x.want):
			t.Errorf("held %s: %v\nwant …%s…", x.name, err, x.want)
		case err == nil && sayLeader(l) != x.want:
			t.Errorf("held %s: the leader is %q, want %q", x.name, sayLeader(l), x.want)
		}
	}
}

func sayLeader(l *target) string {
	return l.String() + ":" + strconv.Itoa(l.port) + " " + l.certificate
}

// TestFindLeaderNamesTheFlag gives flags that name no object.
func TestFindLeaderNamesTheFlag(t *testing.T) {
	for _, x := range []struct {
		flags Flags
		want  string
	}{
		{Flags{Lease: "berth"}, `--lease is "berth"; it must be the Lease as NAMESPACE/NAME`},
		{Flags{Lease: "kube-system/"}, "--lease is"},
		{Flags{Pod: "berth-0"}, `--pod is "berth-0"; it must be the pod of Berth as NAMESPACE/NAME`},
		{Flags{Lease: "kube-system/berth"}, "no Lease kube-system/berth: Berth is not running here"},
	} {
		if _, err := x.flags.findLeader(t.Context(), fake.NewClientset(), &serverClock{}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v\nwant …%s…", x.flags, err, x.want)
		}
	}
	given := Flags{Lease: "kube-system/berth", Pod: "ns/berth-0"}
	if l, err := given.findLeader(t.Context(), fake.NewClientset(), &serverClock{}); err != nil || sayLeader(l) != "ns/berth-0:10259 " {
		t.Errorf("with --pod the leader is %v %v", l, err)
	}
	missing := Flags{Kubeconfig: filepath.Join(t.TempDir(), "none"), Lease: "kube-system/berth"}
	if _, err := missing.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "set --kubeconfig") {
		t.Errorf("a kubeconfig that isn't there: %v", err)
	}
}

// TestTheAPIServersClockJudgesTheLease reads the time of an answer, whatever this machine says.
func TestTheAPIServersClockJudgesTheLease(t *testing.T) {
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", at.Format(http.TimeFormat)) }))
	defer server.Close()
	clock := &serverClock{}
	client := http.Client{Transport: clock.reading(http.DefaultTransport)}
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if !clock.now().Equal(at) {
		t.Errorf("it is %s, want %s", clock.now(), at)
	}
}

// TestOnlyBerthsCertificateIsSpokenTo checks a server's certificate by the fingerprint of the Lease,
// and by --certificate-authority, right and wrong.
func TestOnlyBerthsCertificateIsSpokenTo(t *testing.T) {
	server, other := httptest.NewTLSServer(nil), filepath.Join(t.TempDir(), "other.pem")
	defer server.Close()
	der := server.Certificate().Raw
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{server.Certificate()}}
	own := filepath.Join(t.TempDir(), "own.pem")
	if err := os.WriteFile(own, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, otherCertificate(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, ca, lease, want string
	}{
		{"the fingerprint of the Lease", "", leader.Fingerprint(der), ""},
		{"another fingerprint", "", leader.Fingerprint([]byte("other")), "is not the Berth that holds the Lease"},
		{"its authority", own, "", ""},
		{"another authority", other, "", "is not signed by --certificate-authority"},
	} {
		check, err := (&Flags{CA: x.ca}).berthsCertificate(&target{certificate: x.lease})
		if err != nil {
			t.Fatal(err)
		}
		if err := check(state); (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want …%s…", x.name, err, x.want)
		}
	}
	if check, err := (&Flags{}).berthsCertificate(&target{}); check != nil || err != nil {
		t.Errorf("when nothing is known of the certificate, it is checked, or %v", err)
	}
}

// otherCertificate returns a certificate that has signed nothing.
func otherCertificate(t *testing.T) []byte {
	t.Helper()
	crt, _ := otherKeyPair(t)
	return crt
}

// otherKeyPair returns such a certificate with its key.
func otherKeyPair(t *testing.T) (crt, key []byte) {
	t.Helper()
	crt, key, err := cert.GenerateSelfSignedCertKey("other", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return crt, key
}

// TestFindShadow finds the one pod of Berth, and names them where there are several.
func TestFindShadow(t *testing.T) {
	pod := func(name string, phase v1.PodPhase) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{nameLabel: "berth"}}, Status: v1.PodStatus{Phase: phase}}
	}
	f := Flags{Lease: "kube-system/berth", Shadow: true}
	for _, x := range []struct {
		pods []runtime.Object
		want string
	}{
		{nil, "no running pod of Berth in namespace kube-system"},
		{[]runtime.Object{pod("a", v1.PodRunning), pod("b", v1.PodPending)}, ""},
		{[]runtime.Object{pod("a", v1.PodRunning), pod("b", v1.PodRunning)}, "several pods of Berth run in namespace kube-system: a, b; name the shadow's with --pod kube-system/NAME"},
	} {
		l, err := f.findLeader(t.Context(), fake.NewClientset(x.pods...), &serverClock{})
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v %v, want …%s…", l, err, x.want)
		}
		if err == nil && sayLeader(l) != "kube-system/a:10259 " {
			t.Errorf("the shadow is %s", sayLeader(l))
		}
	}
}

// TestMissingRightsAreNamed, and expired credentials, with what to do.
func TestMissingRightsAreNamed(t *testing.T) {
	pods, leases := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for _, x := range []struct {
		shadow         bool
		verb, resource string
		err            error
		want           string
	}{
		{false, "get", "leases", apierrors.NewForbidden(leases, "berth", errors.New("no")), "not authorized to get the Lease kube-system/berth"},
		{false, "get", "leases", apierrors.NewUnauthorized("expired"), "the API server rejects the credentials of the kubeconfig: expired; log in again"},
		{true, "list", "pods", apierrors.NewForbidden(pods, "", errors.New("no")), "not authorized to list pods in namespace kube-system (403)"},
		{true, "list", "pods", apierrors.NewUnauthorized("expired"), "log in again"},
	} {
		client := fake.NewClientset()
		client.PrependReactor(x.verb, x.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, x.err })
		f := Flags{Lease: "kube-system/berth", Shadow: x.shadow}
		if _, err := f.findLeader(t.Context(), client, &serverClock{}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s of %s: %v, want …%s…", x.verb, x.resource, err, x.want)
		}
	}
}

// TestKubectlsFlags are all there, but for those that are about Berth itself here.
func TestKubectlsFlags(t *testing.T) {
	f, fs := &Flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(fs)
	for _, name := range []string{"kubeconfig", "context", "cluster", "user", "token", "as", "as-group", "as-uid", "request-timeout", "client-certificate", "client-key", "tls-server-name", "proxy-url"} {
		if fs.Lookup(name) == nil {
			t.Errorf("there is no --%s", name)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if _, err := (&Flags{Lease: "kube-system/berth"}).Open(t.Context()); err == nil || err.Error() != "there is no kubeconfig: set --kubeconfig or $KUBECONFIG, or connect to Berth directly with --server" {
		t.Errorf("without a kubeconfig: %v", err)
	}
}
