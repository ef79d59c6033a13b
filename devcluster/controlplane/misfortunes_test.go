package controlplane

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestAnAPIServerThatReadsOneKindOnlyIsNotBack: only answers for pods, nodes and Leases that
// were looked for in etcd count.
func TestAnAPIServerThatReadsOneKindOnlyIsNotBack(t *testing.T) {
	for _, away := range []string{"", "/pods/", "/nodes/", "/leases/"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			answer, code := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound
			if away != "" && strings.Contains(r.URL.Path, away) {
				answer, code = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`, http.StatusInternalServerError
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(answer))
		}))
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := readsFromEtcd(t.Context(), client), away == ""; got != want {
			t.Errorf("with %q unread the API server reads: %t, want %t", away, got, want)
		}
		server.Close()
	}
}
