package main

import (
	"maps"
	"math"
	"slices"
)

// law is y = factor · x^exponent: an exponent of 1 is work in proportion to the cluster.
type law struct{ factor, exponent float64 }

func (l law) at(x float64) float64 { return l.factor * math.Pow(x, l.exponent) }

// fit returns the law with the least squares between logarithms of points. It is false for fewer
// than two x, and when some value isn't above 0.
func fit(points map[int]float64) (law, bool) {
	var n, sx, sy, sxx, sxy float64
	for _, nodes := range slices.Sorted(maps.Keys(points)) {
		if nodes <= 0 || !(points[nodes] > 0) {
			return law{}, false
		}
		x, y := math.Log(float64(nodes)), math.Log(points[nodes])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 {
		return law{}, false
	}
	b := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return law{math.Exp((sy - b*sx) / n), b}, true
}

// largest returns the largest x up to most at which a rising f is at most bound, and 0 when it is
// above even at 1.
func largest(f func(float64) float64, bound, most float64) float64 {
	if f(1) > bound {
		return 0
	}
	low, high := 1.0, most
	for range 100 {
		if middle := (low + high) / 2; f(middle) > bound {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}
