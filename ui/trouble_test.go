package ui_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

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
		{"expired credentials", failure{http.StatusUnauthorized, "application/json", `{"error":"not authenticated (401)"}`}, "You aren’t signed in."},
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
		}), chromedp.WaitVisible(`//*[contains(@class, "banner")][contains(., "`+x.want+`")]`), chromedp.Text(".banner", &banner, chromedp.ByQuery), chromedp.Text("#drawer-title", &title, chromedp.ByQuery),
			chromedp.ActionFunc(func(context.Context) error { s.failing.Store(nil); return nil }),
			chromedp.WaitNotPresent(".banner", chromedp.ByQuery), chromedp.Location(&hash))
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if title != "db-0001" || !strings.HasSuffix(hash, "#/nodes?q=db&node=db-0001") || !strings.Contains(banner, "What is shown is") {
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
