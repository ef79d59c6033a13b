package loopback

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// running is a server whose API answers with what it was asked.
func running(t *testing.T) (s *Server, base string) {
	t.Helper()
	s, err := Listen(t.Context(), 0, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "api ", r.URL.Path) }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving ended: %v", err)
		}
	})
	return s, "http://" + s.hosts[0]
}

// browser returns a client with cookies of its own.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func open(t *testing.T, c *http.Client, r *http.Request) (code int, body string, at *url.URL) {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s: the headers are %v", r.URL, resp.Header)
	}
	return resp.StatusCode, string(raw), resp.Request.URL
}

func request(t *testing.T, method, address string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// TestTheAddressWorksOnce, for the browser that opens it first.
func TestTheAddressWorksOnce(t *testing.T) {
	s, base := running(t)
	address, mine, other := s.Address(), browser(t), browser(t)
	if code, _, _ := open(t, other, request(t, http.MethodGet, base+"/ui/")); code != http.StatusUnauthorized {
		t.Errorf("before: got %d", code)
	}
	if code, _, _ := open(t, other, request(t, http.MethodGet, base+"/?k=guess")); code != http.StatusUnauthorized {
		t.Errorf("with a guess: got %d", code)
	}
	if code, _, _ := open(t, other, request(t, http.MethodHead, address)); code != http.StatusUnauthorized {
		t.Errorf("HEAD: got %d", code)
	}
	if code, body, at := open(t, mine, request(t, http.MethodGet, address)); code != http.StatusOK || !strings.Contains(body, "<html") || at.String() != base+"/ui/" {
		t.Errorf("the first: got %d at %s", code, at)
	}
	if code, body, _ := open(t, mine, request(t, http.MethodGet, base+"/api/v1alpha1/overview")); code != http.StatusOK || body != "api /api/v1alpha1/overview" {
		t.Errorf("the API: got %d %s", code, body)
	}
	if code, _, _ := open(t, mine, request(t, http.MethodGet, address)); code != http.StatusOK {
		t.Errorf("the same browser again: got %d", code)
	}
	for _, path := range []string{address, base + "/ui/", base + "/api/v1alpha1/overview"} {
		if code, _, _ := open(t, other, request(t, http.MethodGet, path)); code != http.StatusUnauthorized {
			t.Errorf("%s, another browser: got %d", path, code)
		}
	}
}

// TestTheCookieIsOutOfReach of scripts and of other sites.
func TestTheCookieIsOutOfReach(t *testing.T) {
	s, _ := running(t)
	c := browser(t)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := c.Do(request(t, http.MethodGet, s.Address()))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("Set-Cookie"); !strings.Contains(got, "HttpOnly") || !strings.Contains(got, "SameSite=Strict") || strings.Contains(s.Address(), s.session) {
		t.Errorf("the cookie is %q", got)
	}
}

// TestOthersAreRefused though they have the cookie: by the host, by where they come from, and by what they ask.
func TestOthersAreRefused(t *testing.T) {
	s, base := running(t)
	c := browser(t)
	open(t, c, request(t, http.MethodGet, s.Address()))
	for _, x := range []struct {
		name, method, host string
		headers            []string
		code               int
	}{
		{"the page", http.MethodGet, "", []string{"Sec-Fetch-Site", "same-origin", "Origin", base}, http.StatusOK},
		{"the user", http.MethodGet, "", []string{"Sec-Fetch-Site", "none"}, http.StatusOK},
		{"a name that was resolved to 127.0.0.1", http.MethodGet, "evil.example:80", nil, http.StatusMisdirectedRequest},
		{"the port of another program", http.MethodGet, "127.0.0.1:1", nil, http.StatusMisdirectedRequest},
		{"the host without its port", http.MethodGet, "127.0.0.1", nil, http.StatusMisdirectedRequest},
		{"another site", http.MethodGet, "", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"another port of this host", http.MethodGet, "", []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"another origin", http.MethodGet, "", []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{"no origin", http.MethodGet, "", []string{"Origin", "null"}, http.StatusForbidden},
		{"a POST", http.MethodPost, "", nil, http.StatusMethodNotAllowed},
		{"an OPTIONS", http.MethodOptions, "", nil, http.StatusMethodNotAllowed},
	} {
		r := request(t, x.method, base+"/api/v1alpha1/overview", x.headers...)
		if x.host != "" {
			r.Host = x.host
		}
		if code, body, _ := open(t, c, r); code != x.code {
			t.Errorf("%s: got %d %s, want %d", x.name, code, body, x.code)
		}
	}
}

// TestNothingElseIsServed.
func TestNothingElseIsServed(t *testing.T) {
	s, base := running(t)
	c := browser(t)
	open(t, c, request(t, http.MethodGet, s.Address()))
	for _, path := range []string{"/metrics", "/debug/status", "/api/v1/pods", "/api/v1alpha1", "/apis"} {
		if code, body, _ := open(t, c, request(t, http.MethodGet, base+path)); code != http.StatusNotFound {
			t.Errorf("%s: got %d %s", path, code, body)
		}
	}
}
