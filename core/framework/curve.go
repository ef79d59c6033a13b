package framework

// ShapePoint is a point of a scoring function as configuration files have it: a utilization of 0 to
// 100 percent, and its score, 0 to 10.
type ShapePoint struct{ Utilization, Score int64 }

// Curve is a scoring function over utilization: straight lines between its points, whose
// utilizations rise, and the score of the first and the last point beyond them. There is at least
// one point; scores are 0 to MaxScore.
type Curve []ShapePoint

// NewCurve returns the curve of a shape, which has at least one point.
func NewCurve(shape []ShapePoint) Curve {
	out := make(Curve, len(shape))
	for i, p := range shape {
		out[i] = ShapePoint{p.Utilization, p.Score * MaxScore / 10}
	}
	return out
}

// At returns the curve's score at a utilization in percent.
func (c Curve) At(utilization int64) int64 {
	for i, p := range c {
		if utilization > p.Utilization {
			continue
		}
		if i == 0 {
			return p.Score
		}
		q := c[i-1]
		return q.Score + (p.Score-q.Score)*(utilization-q.Utilization)/(p.Utilization-q.Utilization)
	}
	return c[len(c)-1].Score
}
