package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/loopback"
	"github.com/berthproject/berth/edge/reach"
)

// placed is a decision about a pod of the namespace default.
func placed(pod string) step.Decision {
	return step.Decision{Kind: step.Placed, Pod: "default/" + pod, Node: "web-0001"}
}

// row is a row of a table that has a text.
func row(text string) string {
	return `//*[@role="row"][contains(@class,"body-row")][contains(.,"` + text + `")]`
}

// TestDecisionsBeforeTheStream: what is decided after the page has read the list, and before its stream begins, is shown, though
// nothing is decided afterwards.
func TestDecisionsBeforeTheStream(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	var once sync.Once
	meet := func(r *http.Request) *failure {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			once.Do(func() { s.decide(placed("between")) })
		}
		return nil
	}
	s.meet.Store(&meet)
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, "#/decisions", ".body-row"), chromedp.WaitVisible(row("default/between"))); err != nil {
		t.Fatal(err)
	}
}

// TestABurstOfDecisions: of more decisions in a tick than an event of the stream has, and of more than one answer has, none that
// is kept is left out.
func TestABurstOfDecisions(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, "#/decisions", ".body-row")); err != nil {
		t.Fatal(err)
	}
	_, last := s.history.Range()
	for _, x := range []struct {
		burst int
		want  string
	}{{1500, fmt.Sprintf("1,%03d decisions", last+1500-1000)}, {4000, fmt.Sprintf("3,000 decisions, the newest of 5,%03d", last+5500-5000)}} {
		burst := make([]step.Decision, x.burst)
		for i := range burst {
			burst[i] = placed(fmt.Sprintf("burst-%d", i))
		}
		s.decide(burst...)
		var text string
		if err := chromedp.Run(ctx, chromedp.WaitVisible(row(fmt.Sprintf("burst-%d", x.burst-1))), chromedp.WaitNotPresent(`//main//*[contains(.,"left out")]`), chromedp.Text(".controls span.soft", &text, chromedp.ByQuery)); err != nil {
			t.Fatal(err)
		}
		if text != x.want {
			t.Errorf("after a burst of %d it says %q, want %q", x.burst, text, x.want)
		}
	}
}

// TestAFreshDecisionIsWhole: the list has decisions without their scores, and the drawer of one of them has them.
func TestAFreshDecisionIsWhole(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	d := placed("fresh")
	d.Score, d.Scores, d.RunnerUp = 93, []engine.PluginScore{{Plugin: "NodeResourcesFit", Score: 93}}, &step.RunnerUp{Node: "web-0002", Score: 90}
	var text string
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, "#/decisions", ".body-row"), chromedp.ActionFunc(func(context.Context) error { s.decide(d); return nil }),
		chromedp.Click(row("default/fresh")), chromedp.WaitVisible("[role=dialog] table", chromedp.ByQuery), chromedp.Text("[role=dialog]", &text, chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"default/fresh", "NodeResourcesFit", "web-0002 with 90, against 93"} {
		if !strings.Contains(text, want) {
			t.Errorf("the drawer has no %q:\n%s", want, text)
		}
	}
}

// TestABusyCoreIsAskedAgain: what wasn't answered for a moment is asked for again, in a cluster in which nothing changes, too.
func TestABusyCoreIsAskedAgain(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	var once sync.Once
	meet := func(r *http.Request) (f *failure) {
		if strings.HasSuffix(r.URL.Path, "/huge-0") {
			once.Do(func() {
				f = &failure{http.StatusServiceUnavailable, "application/json", `{"error":"the core is busy, or other queries are being answered; try again"}`}
			})
		}
		return f
	}
	s.meet.Store(&meet)
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, "#/pending?pod=team-b/huge-0", "[role=dialog] .bad"), chromedp.WaitVisible("[role=dialog] table", chromedp.ByQuery), chromedp.WaitNotPresent("[role=dialog] .content > .bad", chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
}

// TestALeaderChangesInTheBrowser: behind berth ui, another leader with an epoch of its own goes on. Decisions of the first go,
// those of the second come, and the page stays where it is. A decision of the first that is open stays, too, and says of which
// leader it is; its address opens no decision of the second with the same number.
func TestALeaderChangesInTheBrowser(t *testing.T) {
	first, second := newSite(t, cluster), newSite(t, cluster)
	second.epoch = "2"
	first.decide(placed("of-the-first"))
	second.decide(placed("of-the-second"))
	var leader atomic.Pointer[site]
	leader.Store(first)
	berth := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leader.Load().Config.Handler.ServeHTTP(w, r) }))
	t.Cleanup(berth.Close)
	t.Cleanup(berth.CloseClientConnections)
	flags := &reach.Flags{Server: berth.URL, Insecure: true}
	forwarder := flags.Forwarder(t.Context())
	t.Cleanup(forwarder.Close)
	local, err := loopback.Listen(t.Context(), 0, forwarder)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	serving, stop := context.WithCancel(t.Context())
	go func() { served <- local.Serve(serving) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	address := local.Address()
	origin, _, _ := strings.Cut(address, "/?")
	ctx, cancel := context.WithTimeout(browser(t, origin), time.Minute)
	defer cancel()

	var before, after, drawer, pages, kept, asked string
	var old int
	const names = `document.querySelector(".tabs").textContent`
	err = chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), open(address, ".stats"), open(origin+"/ui/#/decisions?q=default", ".body-row"), chromedp.Click(row("of-the-first")),
		chromedp.WaitVisible("[role=dialog] dl", chromedp.ByQuery), chromedp.Location(&before), chromedp.Evaluate(names, &pages),
		chromedp.ActionFunc(func(context.Context) error { leader.Store(second); berth.CloseClientConnections(); return nil }),
		chromedp.WaitReady(row("of-the-second")), chromedp.WaitVisible("[role=dialog] .remark", chromedp.ByQuery), chromedp.WaitNotPresent(".banner", chromedp.ByQuery), chromedp.Location(&after), chromedp.Text("[role=dialog]", &drawer, chromedp.ByQuery), chromedp.Evaluate(names, &kept),
		chromedp.Evaluate(`[...document.querySelectorAll(".body-row")].filter(r => r.textContent.includes("of-the-first")).length`, &old))
	if err != nil {
		t.Fatal(err)
	}
	err = chromedp.Run(ctx, open(before, "[role=dialog] .remark"), chromedp.WaitReady(row("of-the-second")), chromedp.Sleep(500*time.Millisecond), chromedp.Text("[role=dialog]", &asked, chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(before, "epoch=1") || after != before || old != 0 || kept != pages {
		t.Errorf("the page was at %s and is at %s, with %d decisions of the first leader and the pages %q, want %q", before, after, old, kept, pages)
	}
	if !strings.Contains(drawer, "of an earlier leader") || !strings.Contains(drawer, "of-the-first") || strings.Contains(drawer, "of-the-second") {
		t.Errorf("the decision that was open says:\n%s", drawer)
	}
	if !strings.Contains(asked, "of an earlier leader") || strings.Contains(asked, "of-the-") {
		t.Errorf("the address of the first leader's decision opens:\n%s", asked)
	}
}
