package framework_test

import (
	"testing"

	"github.com/berthproject/berth/core/framework"
)

func TestCurve(t *testing.T) {
	hill := framework.NewCurve([]framework.ShapePoint{{Utilization: 20, Score: 0}, {Utilization: 60, Score: 10}, {Utilization: 80, Score: 4}})
	flat := framework.NewCurve([]framework.ShapePoint{{Utilization: 50, Score: 7}})
	for _, c := range []struct {
		curve    framework.Curve
		at, want int64
	}{
		{hill, 0, 0}, {hill, 20, 0}, {hill, 21, 2}, {hill, 40, 50}, {hill, 60, 100}, {hill, 61, 97}, {hill, 80, 40}, {hill, 100, 40},
		{flat, 0, 70}, {flat, 50, 70}, {flat, 100, 70},
	} {
		if got := c.curve.At(c.at); got != c.want {
			t.Errorf("%v at %d: %d, want %d", c.curve, c.at, got, c.want)
		}
	}
}
