package ui_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestWhatWouldHelp: a reason of pending pods says what would help one of them once somebody opens that, and asks nothing
// before.
func TestWhatWouldHelp(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	const summary = `//main//summary[contains(.,"What would help team-b/huge-0")]`
	var before, after, link string
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, "#/pending", "main table"), chromedp.WaitVisible(summary),
		chromedp.Evaluate(`document.querySelector("main details.twin").textContent`, &before),
		chromedp.Click(summary), chromedp.WaitVisible(summary+`/..//a`),
		chromedp.Text(summary+`/..`, &after), chromedp.AttributeValue(summary+`/..//a`, "href", &link, nil))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(before, "node group") {
		t.Errorf("what would help is there before it is opened: %s", before)
	}
	if lines := strings.Split(strings.TrimSpace(after), "\n"); len(lines) < 3 || !strings.Contains(after, "What nodes and node groups answer") {
		t.Errorf("opened it says %q, want a change that would help and where to read more", after)
	}
	if !strings.Contains(link, "pod=team-b%2Fhuge-0") {
		t.Errorf("it leads to %s, not to the pod", link)
	}
}
