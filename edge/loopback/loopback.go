// Package loopback serves the web page and the API to one user's browser, on this machine only.
//
// Other programs and users of the machine, and pages of other sites in the same browser, can reach the port,
// too. What must hold, for every request:
//   - its Host is the address that is served, so that a name which an attacker has resolve to 127.0.0.1
//     (DNS rebinding) gets nothing;
//   - it comes from the page itself or from the user, by Sec-Fetch-Site and Origin;
//   - it has the cookie of this process, which a browser gets once for the key of the printed address;
//   - it is a GET or HEAD.
package loopback

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berthproject/berth/edge/api"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/ui"
)

// Server serves the page and the API on a port of the loopback address.
type Server struct {
	listener net.Listener
	hosts    []string // that a request may be for
	cookie   string   // its name: cookies of all ports of a host are one set
	session  string   // its value

	mu  sync.Mutex
	key string // "" once it has been used

	page, api http.Handler
}

// Listen returns a server at a port, 0 for any that is free. what answers the API.
func Listen(ctx context.Context, port int, what http.Handler) (*Server, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("--local-port: %w; choose another, or 0 for one that is free", err)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	return &Server{
		listener: listener, hosts: []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)},
		cookie: fmt.Sprintf("berth-%d", port), session: rand.Text(), key: rand.Text(), page: http.StripPrefix(strings.TrimSuffix(observe.PagePath, "/"), ui.Handler()), api: what,
	}, nil
}

// Address returns what the user opens: it works once.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("http://%s/?k=%s", s.hosts[0], s.key)
}

// Serve serves until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 16}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // streams have no end
	defer stop()
	if err := server.Serve(s.listener); ctx.Err() == nil {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if why, code := s.refused(r); why != "" {
		http.Error(w, why, code)
		return
	}
	if r.URL.Path == "/" {
		s.enter(w, r)
		return
	}
	if !s.knows(r) {
		http.Error(w, "open the address that berth ui has printed; after it has been used, start berth ui again for another", http.StatusUnauthorized)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, api.Prefix):
		s.api.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, observe.PagePath):
		s.page.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// secure tells a browser to take nothing of an answer for anything else, and to show it in no other page. The page
// itself says what it needs.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// refused returns why a request isn't looked at, whatever it is for, "" when it is.
func (s *Server) refused(r *http.Request) (why string, code int) {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case !slices.Contains(s.hosts, r.Host):
		return fmt.Sprintf("this is %s, and not the host of the request", s.hosts[0]), http.StatusMisdirectedRequest
	case origin != "" && origin != "http://"+r.Host, site != "" && site != "same-origin" && site != "none":
		return "requests of other sites are refused", http.StatusForbidden
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "use GET", http.StatusMethodNotAllowed
	}
	return "", 0
}

// enter gives a browser the cookie for the key, and sends it to the page without the key in the address.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	if !s.knows(r) && !s.use(r) {
		http.Error(w, "open the address that berth ui has printed; after it has been used, start berth ui again for another", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, observe.PagePath, http.StatusSeeOther)
}

// knows reports whether a request has the cookie.
func (s *Server) knows(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	return err == nil && same(c.Value, s.session)
}

// use reports whether a request has the key, which nobody has used, and uses it. A HEAD, by which some programs look at
// an address before they open it, doesn't.
func (s *Server) use(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == "" || r.Method != http.MethodGet || !same(r.URL.Query().Get("k"), s.key) {
		return false
	}
	s.key = ""
	return true
}

// same compares secrets in a time that tells nothing of them.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
