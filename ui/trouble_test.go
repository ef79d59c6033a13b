package ui_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// soon says that what is shown is some seconds old, by the clock of the cluster: that of this machine may be another.
var soon = regexp.MustCompile(`What is shown is \d{1,2}s old`)

// TestTrouble: whatever the API answers in place of what was asked, the page says what that means, keeps what it
// has and where it is, and goes on by itself once it is answered again.
func TestTrouble(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	for _, x := range []struct {
		name string
		failure
		want string
	}{
		{"expired credentials", failure{http.StatusUnauthorized, "application/json", `{"error":"not authenticated (401); give a kubeconfig with --kubeconfig, or a token with --token-file"}`}, "You aren’t signed in: not authenticated (401); give a kubeconfig with --kubeconfig, or a token with --token-file"},
		{"expired key", failure{http.StatusUnauthorized, "text/plain; charset=utf-8", "open the address that berth ui has printed; after it has been used, start berth ui again for another\n"}, "You aren’t signed in: open the address that berth ui has printed"},
		{"a proxy's refusal", failure{http.StatusForbidden, "text/html; charset=utf-8", "<html><title>403</title>No</html>"}, "You have no right to see this: 403"},
		{"no right", failure{http.StatusForbidden, "application/json", `{"error":"not authorized to get /api/v1alpha1/meta (403): ask for the ClusterRole berth-viewer"}`}, "You have no right to see this: not authorized to get /api/v1alpha1/meta (403): ask for the ClusterRole berth-viewer"},
		{"a busy core", failure{http.StatusServiceUnavailable, "application/json", `{"error":"the core is busy, or other queries are being answered; try again"}`}, "the core is busy"},
		{"a proxy's page", failure{http.StatusOK, "text/html", "<html>Sign in</html>"}, "The answer isn’t Berth’s."},
		{"an error without words", failure{http.StatusBadGateway, "text/plain", ""}, "502"},
	} {
		var banner, title, hash string
		err := chromedp.Run(ctx, show(s, "#/nodes?q=db&node=db-0001", "[role=dialog] table"), chromedp.ActionFunc(func(context.Context) error {
			s.failing.Store(&x.failure)
			s.CloseClientConnections()
			return nil
		}), chromedp.WaitVisible(`//*[contains(@class, "banner")][contains(., "`+x.want+`")]`), chromedp.Text("[role=dialog] .banner", &banner, chromedp.ByQuery), chromedp.Text("#drawer-title", &title, chromedp.ByQuery),
			chromedp.ActionFunc(func(context.Context) error { s.failing.Store(nil); return nil }),
			chromedp.WaitNotPresent(".banner", chromedp.ByQuery), chromedp.Location(&hash))
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if title != "db-0001" || !strings.HasSuffix(hash, "#/nodes?q=db&node=db-0001") || !soon.MatchString(banner) {
			t.Errorf("%s: the page is at %s with %q open, and says %q", x.name, hash, title, banner)
		}
	}
}

// TestAViewerWithoutRights sees why there is nothing, and no page of an error.
func TestAViewerWithoutRights(t *testing.T) {
	s := newSite(t, cluster)
	s.failing.Store(&failure{http.StatusForbidden, "application/json", `{"error":"ask for the ClusterRole berth-viewer"}`})
	ctx := browser(t, s.URL)
	var banner string
	if err := chromedp.Run(ctx, show(s, "#/", ".banner.bad"), chromedp.Text(".banner.bad", &banner, chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(banner, "You have no right to see this: ask for the ClusterRole berth-viewer") {
		t.Errorf("the page says %q", banner)
	}
	for _, v := range violations(t, ctx) {
		t.Error(v)
	}
}

// TestPagesInTrouble surveys what stands there while nobody answers, when another leads, and for a viewer without rights.
func TestPagesInTrouble(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	fail := func(f *failure) chromedp.Action {
		return chromedp.ActionFunc(func(context.Context) error { s.failing.Store(f); s.CloseClientConnections(); return nil })
	}
	lead := func(leads bool) chromedp.Action {
		return chromedp.ActionFunc(func(context.Context) error { s.leading.Store(leads); s.CloseClientConnections(); return nil })
	}
	gone := &failure{http.StatusBadGateway, "application/json", `{"error":"querying Berth: dial tcp 10.0.0.7:10259: connect: connection refused"}`}
	denied := &failure{http.StatusForbidden, "application/json", `{"error":"not authorized to get /api/v1alpha1/meta (403): a cluster administrator can grant it with: kubectl create clusterrolebinding berth-viewer-NAME --clusterrole=berth-viewer --user=NAME"}`}
	for _, x := range []struct {
		look
		before, after chromedp.Action
	}{
		{look{"trouble-stale", "#/", ".banner"}, chromedp.Tasks{show(s, "#/", ".stats"), fail(gone)}, fail(nil)},
		{look{"trouble-drawer", "#/nodes", ".banner"}, chromedp.Tasks{show(s, "#/nodes?node=db-0001", "[role=dialog] table"), fail(gone)}, fail(nil)},
		{look{"trouble-leader", "#/nodes", ".banner"}, chromedp.Tasks{show(s, "#/nodes", ".body-row"), lead(false)}, lead(true)},
		{look{"trouble-rights", "#/", ".banner.bad"}, chromedp.Tasks{fail(denied), show(s, "#/", ".banner.bad")}, fail(nil)},
	} {
		if err := chromedp.Run(ctx, x.before, chromedp.WaitVisible(x.ready, chromedp.ByQuery)); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		survey(t, ctx, x.look)
		if err := chromedp.Run(ctx, x.after); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEmptyPages says of each page of a cluster with nothing in it, and where filters leave nothing, that there is nothing.
func TestEmptyPages(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, []byte("apiVersion: berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: empty}\nspec:\n  end: {at: 2m}\n  nodes: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, empty)
	ctx := browser(t, s.URL)
	lookAt(t, ctx, s.URL+"/ui/", []look{
		{"empty-now", "#/", ".stats"}, {"empty-pending", "#/pending", "main .empty"}, {"empty-nodes", "#/nodes", "main .empty"}, {"empty-map", "#/nodes?view=map", "main .empty"}, {"empty-decisions", "#/decisions", "main .empty"},
	})
	var text string
	if err := chromedp.Run(ctx, show(s, "#/", ".stats"), chromedp.Text("main", &text, chromedp.ByQuery)); err != nil || !strings.Contains(text, "There is no pod.") || strings.Contains(text, "All 0") {
		t.Errorf("of no pods it says (%v):\n%s", err, text)
	}
	full := newSite(t, cluster)
	lookAt(t, browser(t, full.URL), full.URL+"/ui/", []look{{"filtered-map", "#/nodes?view=map&q=nothing", "main .empty"}, {"filtered-groups", "#/groups?q=nothing", "main .empty"}})
}
