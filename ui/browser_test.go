package ui_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axe is the accessibility checker that runs in the page.
//
//go:embed testdata/axe.min.js
var axe string

// browser starts Chromium. What it complains of fails the test, and so does a request to elsewhere than origin.
func browser(t *testing.T, origin string) (ctx context.Context) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("needs chromium on the PATH: %v", err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile(t)), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute+time.Duration(*ticks)*30*time.Second)
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(ev any) { complain(t, origin, ev) })
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), cdpruntime.Enable(), emulation.SetFocusEmulationEnabled(true)); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// profile returns a folder for the browser. What the browser has started may write there for a moment after it
// has ended.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-page-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}

// refused are the answers that tests have the API give.
var refused = regexp.MustCompile(`status of (401|403|502|503) `)

// complain fails the test for errors on the console, violations of the content security policy (which the log has)
// and requests to elsewhere.
func complain(t *testing.T, origin string, ev any) {
	switch e := ev.(type) {
	case *cdpruntime.EventExceptionThrown:
		t.Errorf("the page threw %s", e.ExceptionDetails.Error())
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.APITypeError {
			t.Errorf("the page wrote an error on the console: %s", e.Args[0].Value)
		}
	case *log.EventEntryAdded:
		// A stand-by's answer, a refusal and a stream that is cut are errors of the network to the browser.
		if e.Entry.Level == log.LevelError && !refused.MatchString(e.Entry.Text) && !strings.HasSuffix(e.Entry.URL, "/stream") {
			t.Errorf("the browser logged %s (%s)", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme+"://"+u.Host != origin {
			t.Errorf("the page asked for %s", e.Request.URL)
		}
	}
}

// show opens a page of the site and waits until something is there.
func show(s *site, hash, ready string) chromedp.Action { return open(s.URL+"/ui/"+hash, ready) }

// open opens an address and waits until something is there.
func open(address, ready string) chromedp.Action {
	return chromedp.Tasks{chromedp.Navigate("about:blank"), chromedp.Navigate(address), chromedp.WaitVisible(ready, chromedp.ByQuery)}
}

// look is a page with what is there once it has drawn itself.
type look struct{ name, hash, ready string }

// pages are the pages of a cluster.
var pages = []look{
	{"now", "#/", ".chart canvas"},
	{"pending", "#/pending", "main table"},
	{"pods", "#/pending?view=pods", "main .body-row"},
	{"nodes", "#/nodes", "main .body-row"},
	{"map", "#/nodes?view=map", ".map .node"},
	{"groups", "#/groups", "main .body-row"},
	{"devices", "#/devices", "main [role=row]:not(.head)"},
	{"decisions", "#/decisions", "main .body-row"},
	{"money", "#/money", "main table"},
	{"pod", "#/pending?pod=team-b/huge-0", "[role=dialog] table"},
	{"placed", "#/nodes?pod=default/web-00002", "[role=dialog] table"},
	{"node", "#/nodes?node=db-0001", "[role=dialog] table"},
	{"group", "#/groups?g=batch", "[role=dialog] dl"},
	{"decision", "#/decisions?seq=1", "[role=dialog] dl"},
	{"nopage", "#/none", "main a"},
}

// TestPages opens each page of a live cluster.
func TestPages(t *testing.T) {
	s := newSite(t, cluster)
	lookAt(t, browser(t, s.URL), s.URL+"/ui/", pages)
}

// TestPodGroupPages opens what there is of pod groups: the list, a gang that is in its rack, one for which room is kept,
// one that fits in no rack and one that lacks a member.
func TestPodGroupPages(t *testing.T) {
	s := newSite(t, filepath.Join("testdata", "gangs.yaml"))
	ctx := browser(t, s.URL)
	lookAt(t, ctx, s.URL+"/ui/", []look{
		{"podgroups", "#/podgroups", "main .body-row"}, {"podgroup-placed", "#/podgroups?pg=default/train", "[role=dialog] table"}, {"podgroup-room", "#/podgroups?pg=default/next", "[role=dialog] dl"},
		{"podgroup-wide", "#/podgroups?pg=default/wide", "[role=dialog] table"}, {"podgroup-short", "#/podgroups?pg=default/short", "[role=dialog] dl"},
	})
	for group, want := range map[string][]string{
		"train": {"placed", "Gang, at least 8 members", "8 placed, 0 pending", "only all members together", "example.com/rack", "required", "Nodes of its members"},
		"next":  {"waits", "Room that is kept for it", "for\n4 members", "released", "at the latest", "kubectl berth explain podgroup next -n default"},
		"wide":  {"waits", "example.com/rack", "none chosen yet", "no placement has room for more than 0"},
		"short": {"0 placed, 3 pending"},
	} {
		var text string
		if err := chromedp.Run(ctx, show(s, "#/podgroups?pg=default/"+group, "[role=dialog] dl"), chromedp.Text("[role=dialog]", &text, chromedp.ByQuery)); err != nil {
			t.Fatalf("%s: %v", group, err)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", group, w, text)
			}
		}
	}
	// A pod leads to its group, by the namespace that the two share.
	var title string
	if err := chromedp.Run(ctx, show(s, "#/pending?pod=default/next-00002", "[role=dialog] dl"), chromedp.Click(`//*[@role="dialog"]//a[text()="next"]`), chromedp.WaitVisible(`//*[@id="drawer-title"][text()="default/next"]`), chromedp.Text("#drawer-title", &title, chromedp.ByQuery)); err != nil || title != "default/next" {
		t.Errorf("a pod's group leads to %q (%v)", title, err)
	}
}

// lookAt opens pages and surveys each.
func lookAt(t *testing.T, ctx context.Context, address string, pages []look) {
	t.Helper()
	for _, p := range pages {
		if err := chromedp.Run(ctx, open(address+p.hash, p.ready)); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		survey(t, ctx, p)
	}
}

// survey looks at what is open in both themes, on a phone, a laptop and a large screen, and on paper: nothing is wider than
// the window, the name of the page is in view, nothing is written on the console, nothing is asked of elsewhere, and axe
// finds nothing serious. With -pictures=DIR the pages are kept as pictures.
func survey(t *testing.T, ctx context.Context, p look) {
	t.Helper()
	sizes := []struct {
		name          string
		width, height int64
	}{{"phone", 390, 844}, {"laptop", 1280, 800}, {"wide", 3840, 2160}}
	for _, theme := range []string{"light", "dark"} {
		for _, size := range sizes {
			name := p.name + "-" + theme + "-" + size.name
			var over int
			var unseen string
			err := chromedp.Run(ctx,
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}),
				chromedp.EmulateViewport(size.width, size.height), chromedp.WaitVisible(p.ready, chromedp.ByQuery),
				chromedp.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &over),
				chromedp.Evaluate(currentTab, &unseen, func(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams { return p.WithAwaitPromise(true) }))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if over > 0 || unseen != "" {
				t.Errorf("%s is wider than the window by %d pixels; out of view is the name of the page %q", name, over, unseen)
			}
			if size.name == "laptop" {
				for _, v := range violations(t, ctx) {
					t.Errorf("%s: %s", name, v)
				}
			}
			keep(t, ctx, name)
		}
	}
	onPaper(t, ctx, p)
}

// currentTab returns the name of the page among those of all pages if it isn't whole within the window, a frame after that
// has another size.
const currentTab = `new Promise(done => requestAnimationFrame(() => setTimeout(() => { const a = document.querySelector(".tabs [aria-current]"), b = a?.getBoundingClientRect();
	done(a && (b.left < -1 || b.right > innerWidth + 1) ? a.textContent : "") })))`

// onPaper looks at a page as it is printed on A4 where the screen's colours are dark: it isn't wider than the paper,
// it has no controls, and it is light.
func onPaper(t *testing.T, ctx context.Context, p look) {
	t.Helper()
	var over, controls int
	var colour string
	err := chromedp.Run(ctx,
		emulation.SetEmulatedMedia().WithMedia("print").WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}),
		chromedp.EmulateViewport(703, 1000), chromedp.WaitReady(p.ready, chromedp.ByQuery),
		chromedp.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &over),
		chromedp.Evaluate(`[...document.querySelectorAll("button:not([role=columnheader] *), input, select, nav")].filter(x => x.checkVisibility()).length`, &controls),
		chromedp.Evaluate(`getComputedStyle(document.documentElement).getPropertyValue("--text")`, &colour))
	if err != nil {
		t.Fatalf("%s on paper: %v", p.name, err)
	}
	if over > 0 || controls > 0 || colour != "#17222d" {
		t.Errorf("%s on paper is wider by %d pixels, has %d controls, and text is %s", p.name, over, controls, colour)
	}
	keep(t, ctx, p.name+"-paper")
	if err := chromedp.Run(ctx, emulation.SetEmulatedMedia().WithMedia("screen")); err != nil {
		t.Fatal(err)
	}
}

// TestAPrintedTableIsWhole prints more rows than a window has.
func TestAPrintedTableIsWhole(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	var inView, printed, after int
	rows := `document.querySelectorAll(".body-row").length`
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 400), show(s, "#/decisions", ".body-row"), chromedp.Evaluate(rows, &inView),
		chromedp.Evaluate(`dispatchEvent(new Event("beforeprint")); new Promise(done => setTimeout(done))`, nil, func(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams { return p.WithAwaitPromise(true) }),
		chromedp.Evaluate(rows, &printed), chromedp.Evaluate(`dispatchEvent(new Event("afterprint")); 0`, nil), chromedp.Sleep(200*time.Millisecond), chromedp.Evaluate(rows, &after))
	if err != nil {
		t.Fatal(err)
	}
	if _, all := s.history.Range(); printed != int(all) || inView >= printed || after != inView {
		t.Errorf("%d rows in view, %d of %d printed, %d afterwards", inView, printed, all, after)
	}
}

// shown are the pictures of docs/web-page.md.
var shown = regexp.MustCompile(`^(now|pod|run|podgroup-room)-(light|dark)-laptop$`)

// keep writes a picture of the page, where -pictures says so, and where -images does if the documentation shows it.
func keep(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	file := ""
	if *pictures != "" {
		file = filepath.Join(*pictures, name+".png")
	}
	if m := shown.FindStringSubmatch(name); m != nil && *images != "" {
		file = filepath.Join(*images, "page-"+m[1]+"-"+m[2]+".png")
	}
	if file == "" {
		return
	}
	var picture []byte
	if err := chromedp.Run(ctx, chromedp.Sleep(200*time.Millisecond), chromedp.CaptureScreenshot(&picture)); err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer // the browser packs in haste
	if x, err := png.Decode(bytes.NewReader(picture)); err != nil {
		t.Fatal(err)
	} else if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, x); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, small.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// violations returns what axe finds that is serious or critical.
func violations(t *testing.T, ctx context.Context) (out []string) {
	t.Helper()
	var raw string
	err := chromedp.Run(ctx, chromedp.Evaluate(axe+"; 0", nil), chromedp.Evaluate(
		`axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).then(r => JSON.stringify(r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => v.id + ": " + v.nodes.map(n => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).slice(0, 3).join("; "))))`,
		&raw, func(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// press sends a key to what has the focus.
func press(key string) chromedp.Action { return chromedp.KeyEvent(key) }

// TestKeyboard goes through the page without a mouse: along a table, into a drawer and out again, and to a
// node by a part of its name.
func TestKeyboard(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	var row, focus, title, hash string
	err := chromedp.Run(ctx,
		chromedp.EmulateViewport(1440, 900), show(s, "#/nodes", ".body-row"),
		chromedp.Focus(".body-row", chromedp.ByQuery), press("j"), press("j"), press("k"),
		chromedp.Evaluate(`document.activeElement.firstElementChild.textContent`, &row),
		press(kb.Enter), chromedp.WaitVisible("[role=dialog] table", chromedp.ByQuery),
		chromedp.Evaluate(`document.activeElement.closest("[role=dialog]") ? "inside" : "outside"`, &focus),
		chromedp.Text("#drawer-title", &title, chromedp.ByQuery),
		press(kb.Escape), chromedp.WaitNotPresent("[role=dialog]", chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	if title != row || focus != "inside" {
		t.Errorf("Enter on %q opened %q, with the focus %s", row, title, focus)
	}
	err = chromedp.Run(ctx,
		chromedp.Sleep(300*time.Millisecond), // what closes gives the focus back a frame later
		chromedp.Evaluate(`document.activeElement.firstElementChild?.textContent ?? ""`, &focus),
		press("/"), chromedp.WaitVisible(".palette input", chromedp.ByQuery), input.InsertText("db-0002"),
		chromedp.WaitVisible(`//li[contains(., "db-0002")]`), press(kb.Enter), chromedp.WaitVisible("[role=dialog] table", chromedp.ByQuery),
		chromedp.Text("#drawer-title", &title, chromedp.ByQuery), press(kb.Escape), chromedp.WaitNotPresent("[role=dialog]", chromedp.ByQuery),
		press("1"), chromedp.WaitVisible(".stats", chromedp.ByQuery), chromedp.Location(&hash))
	if err != nil {
		t.Fatal(err)
	}
	if focus != row {
		t.Errorf("after Esc the focus is on %q, not on %q", focus, row)
	}
	if title != "db-0002" || !strings.HasSuffix(hash, "#/now") {
		t.Errorf("/ went to %q, and 1 to %q", title, hash)
	}
}

// TestTheURLIsTheState: what is filtered, sorted and open is in the address, and Back takes it back.
func TestTheURLIsTheState(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	var first, title string
	var rows int
	err := chromedp.Run(ctx,
		chromedp.EmulateViewport(1440, 900), show(s, "#/nodes?q=web&sort=-name", ".body-row"),
		chromedp.Text(".body-row [role=cell]", &first, chromedp.ByQuery), chromedp.Evaluate(`document.querySelectorAll(".body-row").length`, &rows),
		chromedp.Click(".body-row", chromedp.ByQuery), chromedp.WaitVisible("#drawer-title", chromedp.ByQuery), chromedp.Text("#drawer-title", &title, chromedp.ByQuery),
		chromedp.NavigateBack(), chromedp.WaitNotPresent("[role=dialog]", chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	if first != "web-0004" || title != first || rows != 4 {
		t.Errorf("%d rows from %q on, and the first opened %q", rows, first, title)
	}
}

// TestADrawerKeepsTheFocus: Tab goes round in a drawer, both ways, and reaches nothing of the page below it.
func TestADrawerKeepsTheFocus(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	const focus = `(() => { const a = document.activeElement; return a.closest("[role=dialog]") ? a.outerHTML.slice(0, 200) : "" })()`
	for _, hash := range []string{"#/nodes?node=db-0001", "#/pending?pod=team-b/huge-0", "#/groups?g=batch", "#/decisions?seq=1"} {
		if err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, hash, "[role=dialog] dl"), chromedp.WaitVisible(".tabs a", chromedp.ByQuery)); err != nil {
			t.Fatalf("%s: %v", hash, err)
		}
		// tabs presses Tab until the focus is where it was after the first.
		tabs := func(modifiers ...input.Modifier) (seen []string) {
			for range 200 {
				var now string
				if err := chromedp.Run(ctx, chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(modifiers...)), chromedp.Evaluate(focus, &now)); err != nil {
					t.Fatalf("%s: %v", hash, err)
				}
				if len(seen) > 0 && now == seen[0] {
					return seen
				}
				seen = append(seen, now)
			}
			t.Errorf("%s: Tab doesn't come back to %s", hash, seen[0])
			return seen
		}
		for _, seen := range [][]string{tabs(), tabs(input.ModifierShift)} {
			if len(seen) < 2 || slices.Contains(seen, "") {
				t.Errorf("%s: Tab leaves the drawer, or stays where it is: %q", hash, seen)
			}
		}
	}
}

// TestAChartsTable opens what a chart has as a table, which has its numbers.
func TestAChartsTable(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	var rows int
	var head string
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, "#/", ".chart canvas"), chromedp.Click(".chart .twin summary", chromedp.ByQuery), chromedp.WaitVisible(".chart .twin table", chromedp.ByQuery),
		chromedp.Evaluate(`[...document.querySelectorAll(".chart .twin tbody tr")].filter(r => /\d/.test(r.cells[0].textContent) && /\d/.test(r.cells[1].textContent)).length`, &rows),
		chromedp.Text(".chart .twin thead", &head, chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	if rows < 10 || !strings.Contains(head, "time") || !strings.Contains(head, "pending") {
		t.Errorf("the table of the first chart has %d rows with numbers below %q", rows, head)
	}
	survey(t, ctx, look{"chart-table", "#/", ".chart .twin table"})
}

// TestAnotherLeader: the page says when whom it asks doesn't lead any more, keeps what it has, and goes on
// as soon as somebody leads.
func TestAnotherLeader(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	var banner, stat, pages, kept string
	const names = `document.querySelector(".tabs").textContent`
	err := chromedp.Run(ctx, show(s, "#/", ".stats"), chromedp.WaitVisible(`//nav//a[text()="Money"]`), chromedp.Evaluate(names, &pages), chromedp.ActionFunc(func(context.Context) error { s.leading.Store(false); return nil }),
		chromedp.ActionFunc(func(context.Context) error { s.CloseClientConnections(); return nil }),
		chromedp.WaitVisible(`//*[contains(@class, "banner")][contains(., "stands by")]`), chromedp.Text(".banner", &banner, chromedp.ByQuery), chromedp.Text(".stat .value", &stat, chromedp.ByQuery), chromedp.Evaluate(names, &kept),
		chromedp.ActionFunc(func(context.Context) error { s.leading.Store(true); return nil }),
		chromedp.WaitNotPresent(".banner", chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	if banner == "" || stat != "5" || kept != pages {
		t.Errorf("the banner was %q, %q pods were pending, and there were the pages %q, want %q", banner, stat, kept, pages)
	}
}
