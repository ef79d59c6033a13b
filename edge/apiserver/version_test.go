package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"

	"github.com/berthproject/berth/config"
)

// TestJudgeVersion: of a cluster that Berth isn't made for it is said which version it has, which
// would do, and what to do. Vendors' versions count as those that they are made of.
func TestJudgeVersion(t *testing.T) {
	const madeFor = "Berth supports Kubernetes 1.33 to 1.37: "
	for _, c := range []struct {
		git, major, minor string
		want              []string // parts of what is said, none for nothing
	}{
		{"v1.33.0", "1", "33", nil},
		{"v1.36.3", "1", "36", nil},
		{"v1.37.9", "1", "37", nil},
		{"v1.33.4-gke.1172000", "1", "33", nil},
		{"v1.34.1-eks-abc", "1", "34+", nil},
		{"v1.33.0-alpha.1+0a1b2c", "1", "33+", nil},
		{"v1.35.2+k3s1", "1", "35", nil},
		{"v1.32.9", "1", "32", []string{"Kubernetes v1.32.9, and " + madeFor, "upgrade the cluster", "--shadow"}},
		{"v1.32.13-eks-abc", "1", "32+", []string{"Kubernetes v1.32.13-eks-abc, and " + madeFor, "upgrade the cluster"}},
		{"v1.9.1", "1", "9", []string{"Kubernetes v1.9.1, and " + madeFor, "upgrade the cluster"}},
		{"v0.99.0", "0", "99", []string{"Kubernetes v0.99.0, and " + madeFor, "upgrade the cluster"}},
		{"v1.38.0", "1", "38", []string{"Kubernetes v1.38.0, and " + madeFor, "use a newer Berth", "--shadow"}},
		{"v1.38.0-alpha.2", "1", "38+", []string{"Kubernetes v1.38.0-alpha.2, and " + madeFor, "use a newer Berth"}},
		{"v2.0.0", "2", "0", []string{"Kubernetes v2.0.0, and " + madeFor, "use a newer Berth"}},
		{"ours", "1", "34+", nil},
		{"ours", "1", "32", []string{"Kubernetes ours, and " + madeFor, "upgrade the cluster"}},
		{"ours", "", "", []string{`version "ours" can't be parsed, and ` + madeFor, "kubectl version"}},
		{"", "one", "34", []string{`version "" can't be parsed, and ` + madeFor, "kubectl version"}},
	} {
		got := judgeVersion(&version.Info{GitVersion: c.git, Major: c.major, Minor: c.minor})
		if len(c.want) == 0 && got != "" {
			t.Errorf("%s (%s, %s): it is said that %s, want nothing", c.git, c.major, c.minor, got)
		}
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s (%s, %s): it is said %q, want …%s…", c.git, c.major, c.minor, got, part)
			}
		}
	}
}

// TestVersionsAreThoseThatPeopleRead: the installation document has a row for each minor version that Berth
// is made for, with the rules that it follows there; the chart is refused by older clusters and
// warns on newer ones.
func TestVersionsAreThoseThatPeopleRead(t *testing.T) {
	document := read(t, "docs", "install.md")
	for minor := range uint(newestMinor + 2) {
		row := fmt.Sprintf("| 1.%d | %s |", minor, followed(&version.Info{Major: "1", Minor: fmt.Sprint(minor)}))
		if has, want := strings.Contains(document, row), minor >= oldestMinor && minor <= newestMinor; has != want {
			t.Errorf("docs/install.md has the row %q: %t, want %t", row, has, want)
		}
	}
	made := fmt.Sprintf("1.%d to 1.%d", oldestMinor, newestMinor)
	for _, x := range []struct{ text, name, want string }{
		{document, "docs/install.md", "You need Kubernetes " + made},
		{document, "docs/install.md", fmt.Sprintf("On a cluster older than 1.%d Helm refuses the chart; on one newer than 1.%d", oldestMinor, newestMinor)},
		{read(t, "README.md"), "README.md", "clusters of Kubernetes " + made},
		{read(t, "deploy", "chart", "Chart.yaml"), "Chart.yaml", fmt.Sprintf("kubeVersion: \">=1.%d.0-0\"\n", oldestMinor)},
		{read(t, "deploy", "chart", "templates", "NOTES.txt"), "NOTES.txt", "Berth supports " + made},
		{read(t, "deploy", "chart", "templates", "NOTES.txt"), "NOTES.txt", fmt.Sprintf("semverCompare \">=1.%d.0-0\"", newestMinor+1)},
	} {
		if !strings.Contains(x.text, x.want) {
			t.Errorf("%s doesn't have %q", x.name, x.want)
		}
	}
}

// read returns a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestConnectSaysWhatVersionItFound asks a server that has nothing but its version, and goes on.
func TestConnectSaysWhatVersionItFound(t *testing.T) {
	for git, want := range map[string]string{"v1.32.9": "runs Kubernetes v1.32.9", "v1.36.3": "", "v1.38.0-eks-1": "runs Kubernetes v1.38.0-eks-1"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(version.Info{GitVersion: git})
		}))
		log := bytes.Buffer{}
		_, err := Connect(t.Context(), Options{Master: server.URL, Config: config.Default()}, slog.New(slog.NewTextHandler(&log, nil)))
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := log.String(); want == "" && got != "" || want != "" && (strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, want)) {
			t.Errorf("%s: logged %q, want a warning with %q, or nothing", git, got, want)
		}
	}
}

// TestAnswersAreNotCompressed: an API server packs a watch event by event for a client that can unpack it. All clients
// are made of the connection's configuration.
func TestAnswersAreNotCompressed(t *testing.T) {
	s, err := Open(Options{Master: "https://api.example.com:6443", Config: config.Default()})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Rest.DisableCompression {
		t.Error("clients accept compressed answers")
	}
}
