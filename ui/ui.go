// Package ui has the web page, built from src by make ui, and serves it.
package ui

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
)

//go:embed dist
var dist embed.FS

// Files are the files of the page, index.html among them.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // only for a name that isn't valid
	}
	return files
}

// policy lets the page have what is beside it and nothing else: no script in a document, nothing from elsewhere,
// and no other page around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Handler serves the page at /, to requests that only read. The page asks for the API at ../api/v1alpha1/ when it
// is served below ui/, and at api/v1alpha1/ otherwise.
func Handler() http.Handler {
	files := http.FileServerFS(Files())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-cache",
		} {
			h.Set(name, value)
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
			return
		}
		if p := path.Clean(r.URL.Path); p != "/" && path.Ext(p) == ".md" { // licences are for whoever has the files
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
}
