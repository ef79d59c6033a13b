package nodegroup_test

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

func TestParseBound(t *testing.T) {
	const form = " must be MIN:MAX:NAME, two whole numbers of at least 0 and the name of a node group, such as 0:10:workers"
	for text, want := range map[string]string{
		"0:10:workers":           "0:10:workers",
		"3:3:fixed":              "3:3:fixed",
		"1:5:https://x/y:groups": "1:5:https://x/y:groups",
		"":                       `""` + form,
		"workers":                `"workers"` + form,
		"1:5":                    `"1:5"` + form,
		"1:5:":                   `"1:5:"` + form,
		"a:5:g":                  `"a:5:g"` + form,
		"1:b:g":                  `"1:b:g"` + form,
		"-1:5:g":                 `"-1:5:g"` + form,
		"1.5:5:g":                `"1.5:5:g"` + form,
		"6:5:g":                  `"6:5:g" has a minimum of 6 above the maximum of 5; set the minimum to at most 5`,
	} {
		b, err := nodegroup.ParseBound(text)
		got := b.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}
