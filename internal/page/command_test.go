package page

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berthproject/berth/edge/api"
)

// TestUIWaitsForALeader: at the start nobody may lead yet, which ends by itself. Whatever else is wrong ends the command.
func TestUIWaitsForALeader(t *testing.T) {
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"kube-system","name":"berth"},"spec":{}}`
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system/leases/berth") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(lease))
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"me": {Token: "secret"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "me"}},
		CurrentContext: "c",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := &options{}
	o.from.Kubeconfig, o.from.Lease = kubeconfig, "kube-system/berth"
	h, err := o.answers(t.Context(), &log)
	if err != nil || !strings.Contains(log.String(), "no leader: the Lease kube-system/berth has no holder") || !strings.Contains(log.String(), "The page waits until an instance leads.") {
		t.Fatalf("it says %q and returns %v", log.String(), err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"meta", nil))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), `{"error":"no leader: the Lease`) {
		t.Errorf("the page is told %d %s", w.Code, w.Body)
	}
	other := &options{}
	other.from.Kubeconfig, other.from.Lease = kubeconfig, "kube-system/none"
	if _, err := other.answers(t.Context(), &log); err == nil || !strings.Contains(err.Error(), "no Lease kube-system/none") {
		t.Errorf("without a Lease it returns %v", err)
	}
}
