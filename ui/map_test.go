package ui_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTheMapByKeys goes from node to node, and opens the one that has the focus. Only the node with the focus and the one
// before it are elements.
func TestTheMapByKeys(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	var first, second, last, title string
	var elements int
	focused := `document.activeElement.dataset.name ?? ""`
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900), show(s, "#/nodes?view=map", ".map .node"),
		chromedp.Evaluate(`document.querySelector(".map .node").focus(); 0`, nil), chromedp.Evaluate(focused, &first),
		press(kb.End), chromedp.Evaluate(focused, &last), press(kb.Home), press(kb.ArrowRight), chromedp.Evaluate(focused, &second),
		chromedp.Evaluate(`document.querySelectorAll(".map .node").length`, &elements), press(kb.Enter),
		chromedp.WaitVisible("[role=dialog] table", chromedp.ByQuery), chromedp.Text("#drawer-title", &title, chromedp.ByQuery))
	if err != nil {
		t.Fatal(err)
	}
	if names := []string{first, second, last}; slices.Contains(names, "") || len(slices.Compact(slices.Sorted(slices.Values(names)))) < 3 || title != second {
		t.Errorf("the focus goes from %q to %q, End to %q, and Enter opens %q", first, second, last, title)
	}
	if elements > 2 {
		t.Errorf("%d nodes are elements, want 2 at most", elements)
	}
}

// TestTheMapIsDrawn in the colours of the theme, again when that changes, and opens the node that is clicked, which has the focus
// afterwards.
func TestTheMapIsDrawn(t *testing.T) {
	s := newSite(t, cluster)
	ctx := browser(t, s.URL)
	dark := func(value string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}})
	}
	// The colour in the last corner of the node that has the focus, where no name is.
	pixel := `(() => { const c = document.querySelector(".map canvas"), n = document.querySelector(".map .node"), s = c.width / c.clientWidth;
		return [...c.getContext("2d").getImageData((n.offsetLeft + n.offsetWidth - 4) * s, (n.offsetTop + n.offsetHeight - 4) * s, 1, 1).data].join(" ") })()`
	var light, night, state, title, name, after string
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900), dark("light"), show(s, "#/nodes?view=map", ".map .node"), chromedp.Evaluate(pixel, &light),
		dark("dark"), chromedp.Sleep(300*time.Millisecond), chromedp.Evaluate(pixel, &night),
		chromedp.Evaluate(`location.hash = "#/nodes?view=map&colour=state"; 0`, nil), chromedp.WaitVisible(`//p[contains(@class,"legend")][contains(.,"could go")]`), chromedp.Evaluate(pixel, &state),
		chromedp.Evaluate(`document.querySelector(".map .node").dataset.name`, &name),
		chromedp.Evaluate(`(() => { const c = document.querySelector(".map canvas"), n = document.querySelector(".map .node").getBoundingClientRect();
			c.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: n.left + n.width / 2, clientY: n.top + n.height / 2 })); return 0 })()`, nil),
		chromedp.WaitVisible("[role=dialog] table", chromedp.ByQuery), chromedp.Text("#drawer-title", &title, chromedp.ByQuery),
		press(kb.Escape), chromedp.WaitNotPresent("[role=dialog]", chromedp.ByQuery),
		// The focus returns when the drawer is cleaned up, a frame or two after the dialog has gone.
		chromedp.Poll(`document.activeElement.dataset.name`, &after))
	if err != nil {
		t.Fatal(err)
	}
	if blank := "0 0 0 0"; light == blank || night == blank || light == night || state == night {
		t.Errorf("a node is drawn as %q, in the dark as %q, by its state as %q", light, night, state)
	}
	if title != name || after != name {
		t.Errorf("a click on %s opens %q, and the focus is on %q when that is closed", name, title, after)
	}
}

// TestTheMapsTextIsAsLargeAsThePages: on a large screen, where the page's text is larger, the names of groups and nodes are,
// too.
func TestTheMapsTextIsAsLargeAsThePages(t *testing.T) {
	s := newSite(t, cluster)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	// How high the letters of the first row of groups' names are, above all nodes, by the size of the page's text.
	const height = `(() => { const c = document.querySelector(".map canvas"), s = c.width / c.clientWidth, g = c.getContext("2d"), em = parseFloat(getComputedStyle(document.documentElement).fontSize)
		let rows = 0
		for (let y = 0; y < Math.round(em * 1.4 * s); y++) if (g.getImageData(0, y, c.width / 4, 1).data.some(x => x)) rows++
		return rows / s / em })()`
	var laptop, wide float64
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), show(s, "#/nodes?view=map", ".map .node"), chromedp.Evaluate(height, &laptop),
		chromedp.EmulateViewport(3840, 2160), chromedp.Sleep(300*time.Millisecond), chromedp.Evaluate(height, &wide))
	if err != nil {
		t.Fatal(err)
	}
	if laptop < 0.5 || wide < 0.85*laptop {
		t.Errorf("letters are %.2f of the page's text high, and %.2f on a large screen", laptop, wide)
	}
}
