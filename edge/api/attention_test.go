package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// TestAPriceFileThatCantBeUsedNeedsAttention, as long as it can't.
func TestAPriceFileThatCantBeUsedNeedsAttention(t *testing.T) {
	o, failure := newExample(t).options(), "prices.yaml:3: the price is -1"
	o.Prices = func() string { return failure }
	for _, want := range []string{"the price file is not used as it is now, and the prices of before hold: prices.yaml:3: the price is -1", ""} {
		code, body := get(api.New(o), "overview")
		overview := v1alpha1.Overview{}
		if err := json.Unmarshal([]byte(body), &overview); err != nil || code != http.StatusOK {
			t.Fatalf("got %d %s", code, body)
		}
		got := ""
		for _, a := range overview.Attention {
			if a.Kind == "PriceFile" {
				got = string(a.Severity) + ": " + a.Message
			}
		}
		if want != "" {
			want = "warning: " + want
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		failure = ""
	}
}
