package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berthproject/berth/edge/api"
)

// TestMistypedNamesAreSuggested for nodes, node groups and pods.
func TestMistypedNamesAreSuggested(t *testing.T) {
	a := api.New(newExample(t).options())
	for path, want := range map[string]string{
		"nodes/db-001":             "node db-001 not found; similar names are db-0001",
		"groups/spott":             "node group spott not found; similar names are spot",
		"pods/default/web-0002":    "similar names there are web-00002",
		"podgroups/default/none":   "pod group default/none not found",
		"podgroups/none":           "give the pod group as podgroups/NAMESPACE/NAME",
		"podgroups/default/none/x": "give the pod group as podgroups/NAMESPACE/NAME",
	} {
		if code, body := get(a, path); code == http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s\nwant …%s…", path, code, body, want)
		}
	}
}
