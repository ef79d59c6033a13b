package observe

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/core/compat"
)

// page asks a server for a page as a media type, "" for none.
func page(s *Server, path, accept string) *httptest.ResponseRecorder {
	request, answer := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	s.handler(true).ServeHTTP(answer, request)
	return answer
}

// structured is what Accept says for an object.
const structured = ";v=v1beta1;g=config.k8s.io;as="

// zpage is an object of config.k8s.io/v1beta1 for either page.
type zpage struct {
	APIVersion, Kind string
	EmulationVersion string
	Paths            []string
	Flags            map[string]string
}

// zpagesServer returns a server with some flags, of which some hold secrets.
func zpagesServer(t *testing.T) *Server {
	t.Helper()
	sets := cliflag.NamedFlagSets{}
	fs := sets.FlagSet("misc")
	fs.String("master", "", "")
	fs.StringSlice("urls", nil, "")
	fs.String("token", "", "")
	fs.Lookup("token").Annotations = map[string][]string{"classified": {"true"}}
	other := sets.FlagSet("other")
	other.Int("v", 2, "")
	for name, value := range map[string]string{"master": "https://user:hunter2@api:6443", "urls": "a,hunter2@b", "token": "hunter2"} {
		if err := fs.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	s := NewServer(slog.New(slog.DiscardHandler))
	s.Flags = Flags(sets)
	return s
}

// TestZpagesAnswerByAccept: plain text unless an object is asked for, as JSON or YAML; other media types
// get 406.
func TestZpagesAnswerByAccept(t *testing.T) {
	s := zpagesServer(t)
	s.Show(Configuration{Version: compat.V36})
	for _, path := range []string{"/statusz", "/flagz"} {
		for _, accept := range []string{"", "text/plain", "*/*"} {
			if a := page(s, path, accept); a.Code != http.StatusOK || !strings.HasPrefix(a.Header().Get("Content-Type"), "text/plain") || !strings.HasPrefix(a.Body.String(), "\nberth "+path[1:]+"\n") {
				t.Errorf("%s as %q: %d %v\n%s", path, accept, a.Code, a.Header(), a.Body)
			}
		}
		kind := map[string]string{"/statusz": "Statusz", "/flagz": "Flagz"}[path]
		for media, read := range map[string]func([]byte, any) error{
			"application/json": json.Unmarshal,
			"application/yaml": func(raw []byte, v any) error { return yaml.Unmarshal(raw, v) },
		} {
			a, got := page(s, path, media+structured+kind), zpage{}
			if err := read(a.Body.Bytes(), &got); err != nil || a.Code != http.StatusOK || got.Kind != kind || got.APIVersion != "config.k8s.io/v1beta1" {
				t.Errorf("%s as %s: %d %v\n%s", path, media, a.Code, err, a.Body)
			}
		}
		if a := page(s, path, "application/vnd.kubernetes.protobuf"); a.Code != http.StatusNotAcceptable {
			t.Errorf("%s as protobuf: %d, want 406", path, a.Code)
		}
	}
}

// TestStatuszSaysWhatIsFollowed as soon as that is known, and which other paths there are.
func TestStatuszSaysWhatIsFollowed(t *testing.T) {
	s := NewServer(slog.New(slog.DiscardHandler))
	for _, v := range append([]compat.Version{0}, compat.Versions()...) {
		want := ""
		if v != 0 {
			want = v.String()
		}
		s.Show(Configuration{Version: v})
		got := zpage{}
		if err := json.Unmarshal(page(s, "/statusz", "application/json"+structured+"Statusz").Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.EmulationVersion != want {
			t.Errorf("the emulation version is %q, want %q", got.EmulationVersion, want)
		}
		for _, path := range []string{"/configz", "/debug", "/healthz", "/livez", "/metrics", "/readyz"} {
			if !slices.Contains(got.Paths, path) {
				t.Errorf("paths are %q, without %s", got.Paths, path)
			}
		}
	}
}

// TestFlagzShowsNoSecrets but every flag.
func TestFlagzShowsNoSecrets(t *testing.T) {
	a, got := page(zpagesServer(t), "/flagz", "application/json"+structured+"Flagz"), zpage{}
	if err := json.Unmarshal(a.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"master": "https://api:6443", "urls": "a,b", "token": "CLASSIFIED", "v": "2"} {
		if got.Flags[name] != want {
			t.Errorf("--%s is %q, want %q", name, got.Flags[name], want)
		}
	}
	if text := page(zpagesServer(t), "/flagz", "").Body.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "https://api:6443") {
		t.Errorf("/flagz shows a secret, or not the address:\n%s", text)
	}
}

// TestReadinessHasTheChecksOfKubeScheduler under their names.
func TestReadinessHasTheChecksOfKubeScheduler(t *testing.T) {
	s := NewServer(slog.New(slog.DiscardHandler))
	stopping := make(chan struct{})
	s.Stopping = stopping
	want := func(synced, shutdown string) {
		t.Helper()
		text := page(s, "/readyz?verbose", "").Body.String()
		if !strings.Contains(text, synced) || !strings.Contains(text, shutdown) {
			t.Errorf("/readyz?verbose answers\n%s\nwant %q and %q", text, synced, shutdown)
		}
	}
	want("[-]sched-handler-sync failed", "[+]shutdown ok")
	if a := page(s, "/readyz/sched-handler-sync", ""); a.Code != http.StatusInternalServerError || !strings.Contains(a.Body.String(), "handlers are not fully synchronized") {
		t.Errorf("/readyz/sched-handler-sync: %d %s", a.Code, a.Body)
	}
	s.HandlersSynced()
	want("[+]sched-handler-sync ok", "[+]shutdown ok")
	close(stopping)
	want("[+]sched-handler-sync ok", "[-]shutdown failed")
	if a := page(s, "/readyz/shutdown", ""); a.Code != http.StatusInternalServerError || !strings.Contains(a.Body.String(), "process is shutting down") {
		t.Errorf("/readyz/shutdown: %d %s", a.Code, a.Body)
	}
}
