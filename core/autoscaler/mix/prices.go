package mix

import "math"

// This file computes the lower bound. Let each resource of a group have a price for all
// of a node's, each edge's constraint a price, and each group one for the room that a
// node takes; none is negative, and the prices of a group's resources and edges add up to
// at most what a node costs and its room is worth. Then, in any purchase, the pods of a
// node pay together, each for its share of each resource and of its edge's constraint, no
// more than the node costs and its room is worth. So what all pods pay, each in the group
// where it pays least, less what all room is worth, is at most what the purchase costs.

// prices are such prices, made from a dual of the relaxation whatever its quality.
type prices struct {
	r    *relaxation
	node []float64 // by group: what a node costs
	// factor is by group what its resources' and edges' duals are multiplied by to add up
	// to the price of a node with its room.
	factor []float64
	room   []float64 // by group: what the room for a node is worth
	pays   []float64 // by class: what a pod pays
}

func newPrices(r *relaxation, node []float64) *prices {
	return &prices{r: r, node: node, factor: make([]float64, len(node)), room: make([]float64, len(node)), pays: make([]float64, len(r.pods))}
}

// set makes prices from a dual, each of whose elements counts scale times.
func (p *prices) set(y []float64, scale float64) {
	r := p.r
	clear(p.factor)
	for j := range r.groups {
		group := &r.groups[j]
		for k := range group.resources {
			p.factor[j] += max(0, -y[r.rowQ+group.row+k])
		}
		p.room[j] = 0
		if group.room >= 0 {
			p.room[j] = scale * max(0, -y[r.rowR+group.room])
		}
	}
	for e := range r.edges {
		if l := r.edges[e].limit; l >= 0 {
			p.factor[r.edges[e].group] += max(0, -y[l])
		}
	}
	for j, sum := range p.factor {
		if sum > 0 {
			p.factor[j] = (p.node[j] + p.room[j]) / sum
		}
	}
	for i := range p.pays {
		p.pays[i] = math.Inf(1)
	}
	for e := range r.edges {
		i := r.edges[e].class
		p.pays[i] = min(p.pays[i], p.payment(e, y)/float64(r.pods[i]))
	}
	for i, pays := range p.pays {
		if math.IsInf(pays, 1) {
			p.pays[i] = 0 // no group takes the class
		}
	}
}

// payment returns what all pods of the edge's class would pay in its group.
func (p *prices) payment(e int, y []float64) (sum float64) {
	edge := &p.r.edges[e]
	row := p.r.rowQ + p.r.groups[edge.group].row
	for k, needs := range edge.needs {
		sum += needs * max(0, -y[row+k])
	}
	if edge.limit >= 0 {
		sum += edge.alone * max(0, -y[edge.limit])
	}
	return sum * p.factor[edge.group]
}

// bound returns what any purchase costs at least that holds so many pods of each class.
func (p *prices) bound(pods []int) (sum float64) {
	for i, n := range pods {
		sum += float64(n) * p.pays[i]
	}
	rounding := 1e-12 * sum * float64(1+len(p.r.edges))
	for j, room := range p.room {
		if room > 0 {
			worth := room * float64(p.r.room[j])
			sum -= worth
			rounding += 1e-12 * worth
		}
	}
	return max(0, sum-rounding)
}
