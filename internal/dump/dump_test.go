package dump

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// This file specifies what a dump has of a cluster, and what it says where rights are missing.

// apiServer answers lists as an API server does; those of forbidden resources are refused.
func apiServer(t *testing.T, forbidden ...string) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		status := func(code int, reason metav1.StatusReason) {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code)}) //nolint:gosec // a status code
		}
		for _, f := range forbidden {
			if f == name {
				status(http.StatusForbidden, metav1.StatusReasonForbidden)
				return
			}
		}
		switch {
		case name == "nodes":
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"n1","annotations":{"secret-note":"hunter2"}},"status":{"allocatable":{"cpu":"4","pods":"10"}}}]}`))
		case name == "pods" && r.URL.Query().Get("continue") == "":
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"more"},"items":[{"metadata":{"namespace":"shop","name":"web-0"},"spec":{"containers":[{"name":"c","image":"i","command":["run","hunter2"],"env":[{"name":"PASSWORD","value":"hunter2"},{"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"hunter2-key","key":"hunter2"}}}],"envFrom":[{"secretRef":{"name":"hunter2-all"}}],"resources":{"requests":{"cpu":"1"}}}],` +
				`"imagePullSecrets":[{"name":"hunter2-pull"}],"volumes":[{"name":"s","secret":{"secretName":"hunter2-files"}},{"name":"p","projected":{"sources":[{"secret":{"name":"hunter2-projected"}}]}},` +
				`{"name":"csi","csi":{"driver":"d","volumeAttributes":{"key":"hunter2"},"nodePublishSecretRef":{"name":"hunter2-inline"}}},{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]}}]}`))
		case name == "persistentvolumes":
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"PersistentVolumeList","items":[{"metadata":{"name":"pv1"},"spec":{"capacity":{"storage":"1Gi"},"csi":{"driver":"d","volumeHandle":"h","volumeAttributes":{"key":"hunter2"},` +
				`"nodePublishSecretRef":{"name":"hunter2-publish","namespace":"shop"},"nodeStageSecretRef":{"name":"hunter2-stage","namespace":"shop"},"controllerExpandSecretRef":{"name":"hunter2-expand","namespace":"shop"}}}}]}`))
		case name == "storageclasses":
			_, _ = w.Write([]byte(`{"apiVersion":"storage.k8s.io/v1","kind":"StorageClassList","items":[{"metadata":{"name":"fast"},"provisioner":"d","parameters":{"csi.storage.k8s.io/provisioner-secret-name":"hunter2"}}]}`))
		case name == "resourceclaims":
			_, _ = w.Write([]byte(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimList","items":[{"metadata":{"namespace":"shop","name":"gpu"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}],` +
				`"config":[{"opaque":{"driver":"d","parameters":{"key":"hunter2"}}}]}},"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"x"}],"config":[{"source":"FromClaim","opaque":{"driver":"d","parameters":{"key":"hunter2"}}}]}},"devices":[{"driver":"d","pool":"p","device":"x","data":{"key":"hunter2"}}]}}]}`))
		case name == "deviceclasses":
			_, _ = w.Write([]byte(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClassList","items":[{"metadata":{"name":"gpu"},"spec":{"config":[{"opaque":{"driver":"d","parameters":{"key":"hunter2"}}}]}}]}`))
		case name == "pods":
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"namespace":"shop","name":"web-1"},"spec":{"containers":[{"name":"c"}]}}]}`))
		default: // not served
			status(http.StatusNotFound, metav1.StatusReasonNotFound)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestADumpHasNoSecrets, and all pages of what is served.
func TestADumpHasNoSecrets(t *testing.T) {
	var out, notes bytes.Buffer
	if err := Write(t.Context(), &out, &notes, apiServer(t, "services"), "berth"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: Node\n", "name: n1", "kind: Pod\n", "name: web-0", "name: web-1", "cpu: \"1\"", "claimName: data", "name: pv1", "volumeHandle: h", "name: fast", "name: gpu", "device: x"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the dump lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("the dump has a secret:\n%s", out.String())
	}
	if got := notes.String(); got != "left out: not authorized to list services (403)\n" {
		t.Errorf("notes are %q", got)
	}
}

// TestADumpNeedsNodesAndPods, and says which right is missing.
func TestADumpNeedsNodesAndPods(t *testing.T) {
	var out bytes.Buffer
	err := Write(t.Context(), &out, &out, apiServer(t, "pods"), "kubectl berth")
	if err == nil || !strings.Contains(err.Error(), "not authorized to list pods (403); a cluster administrator can grant it with: kubectl berth dump --role | kubectl apply -f -") {
		t.Errorf("without the right to list pods: %v", err)
	}
}

// TestTheRoleListsWhatIsRead and allows nothing else.
func TestTheRoleListsWhatIsRead(t *testing.T) {
	var out bytes.Buffer
	if err := writeRole(&out); err != nil {
		t.Fatal(err)
	}
	for _, r := range resources {
		if !strings.Contains(out.String(), "- "+r.name+"\n") {
			t.Errorf("the role lacks %s:\n%s", r, out.String())
		}
	}
	if strings.Contains(out.String(), "- get\n") || strings.Contains(out.String(), "- watch\n") || strings.Contains(out.String(), "- secrets\n") {
		t.Errorf("the role allows more than lists:\n%s", out.String())
	}
}
