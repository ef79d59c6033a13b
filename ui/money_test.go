package ui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// stat waits for a figure of the page by its label, and takes its value and its note.
func stat(label string, value, note *string) chromedp.Action {
	of := `//div[contains(@class,"stat")][span[@class="label"][text()="` + label + `"]]/span`
	return chromedp.Tasks{chromedp.WaitVisible(of + `[contains(@class,"note")]`), chromedp.Text(of+`[contains(@class,"value")]`, value), chromedp.Text(of+`[contains(@class,"note")]`, note)}
}

// boughtOf asks the API what was bought.
func boughtOf(t *testing.T, origin, query string) *v1alpha1.Bought {
	t.Helper()
	resp, err := http.Get(origin + api.Prefix + "money" + query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var m v1alpha1.Money
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m.Bought
}

// TestMoneyShowsTheLowerBound: what was bought for pods stands beside what any purchase for them costs at least, in the
// figures of the API.
func TestMoneyShowsTheLowerBound(t *testing.T) {
	s := newSite(t, filepath.Join("testdata", "bound.yaml"))
	b := boughtOf(t, s.URL, "")
	if b == nil || b.Bounded == 0 || b.LowerBound <= 0 || b.BoundedChosen <= b.LowerBound*1.001 {
		t.Fatalf("%+v was bought, want more than the lower bound", b)
	}
	ctx := browser(t, s.URL)
	lookAt(t, ctx, s.URL+"/ui/", []look{{"money-bound", "#/money", "main table"}})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var above, note, bought, others string
	if err := chromedp.Run(ctx, show(s, "#/money", "main table"), stat("Bought above the lower bound", &above, &note), stat("Bought", &bought, &others)); err != nil {
		t.Fatal(err)
	}
	// No alternative is said to cost less than the least that any costs.
	if want := fmt.Sprintf("the next best would have cost $%.2f/h or more", float64(b.Next)); b.Next < b.LowerBound || !strings.Contains(others, want) {
		t.Errorf("beside %s is %q, want %q, and not less than %v", bought, others, want, b.LowerBound)
	}
	if want := fmt.Sprintf("%.1f %%", 100*(float64(b.BoundedChosen/b.LowerBound)-1)); above != want {
		t.Errorf("bought for %s above the lower bound, want %s", above, want)
	}
	for _, want := range []string{fmt.Sprintf("$%.2f/h, and no purchase", float64(b.BoundedChosen)), fmt.Sprintf("costs less than $%.2f/h", float64(b.LowerBound)), fmt.Sprintf("%d order", b.Bounded)} {
		if !strings.Contains(note, want) {
			t.Errorf("the note is %q, want %q in it", note, want)
		}
	}
}

// TestMoneyWithoutALowerBound says that there is none, and what knows one; also before anything was bought. The provider has
// what is ordered of the group with an alternative: an order that fails isn't counted.
func TestMoneyWithoutALowerBound(t *testing.T) {
	text, err := os.ReadFile(cluster)
	stocked := filepath.Join(t.TempDir(), "stocked.yaml")
	if err != nil || os.WriteFile(stocked, bytes.ReplaceAll(text, []byte("stock: 0"), []byte("stock: 9")), 0o600) != nil {
		t.Fatal("no scenario", err)
	}
	s := newReplayOf(t, stocked)
	ctx, cancel := context.WithTimeout(browser(t, s.URL), time.Minute)
	defer cancel()
	if b := boughtOf(t, s.URL, ""); b == nil || b.Bounded != 0 {
		t.Fatalf("%+v was bought, want something without a lower bound", b)
	}
	var above, why, bought, nothing string
	err = chromedp.Run(ctx, chromedp.EmulateViewport(1280, 800), open(s.URL+"/ui/#/money", "main table"), stat("Bought above the lower bound", &above, &why),
		chromedp.Navigate(s.URL+"/ui/#/money?t=1m0s"), chromedp.WaitVisible(`//span[contains(@class,"note")][contains(.,"no order that had an alternative")]`), stat("Bought", &bought, &nothing))
	if err != nil {
		t.Fatal(err)
	}
	if above != "–" || !strings.Contains(why, "--expander=cost") {
		t.Errorf("bought for %q above the lower bound, because %q; want – and --expander=cost", above, why)
	}
	if bought != "–" {
		t.Errorf("before anything was bought that is %q (%s), want –", bought, nothing)
	}
}
