package charttest

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestNotesOfAShadow: what Helm prints after the installation of a shadow has the command that finds it, with what it can't
// know by itself: another namespace than kube-system, and another port.
func TestNotesOfAShadow(t *testing.T) {
	for _, x := range []struct{ in, values, want string }{
		{namespace, "shadow: {enabled: true}", "kubectl berth shadow report"},
		{"own", "shadow: {enabled: true}", "kubectl berth shadow report --service-account own/berth"},
		{namespace, "{shadow: {enabled: true}, serviceAccount: {name: other}}", "kubectl berth shadow report --service-account kube-system/other"},
		{"own", "{shadow: {enabled: true}, serviceAccount: {name: other}, flags: {secure-port: 10260}}", "kubectl berth shadow report --service-account own/other --port 10260"},
	} {
		v := map[string]any{}
		must(t, yaml.Unmarshal([]byte(x.values), &v))
		r, err := releaseIn(t, x.in, v, current)
		must(t, err)
		found := false
		for line := range strings.Lines(r.Info.Notes) {
			found = found || strings.TrimSpace(line) == x.want
		}
		if !found {
			t.Errorf("in %s with %s the notes have no line %q:\n%s", x.in, x.values, x.want, r.Info.Notes)
		}
	}
}
