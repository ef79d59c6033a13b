package launching

import "time"

// This file is what launch control has learnt of the cluster as a whole, or of one group.
// Sums of products are written so that no processor fuses them: decisions are the same
// everywhere.

// guessedPull is how long a pull is taken to be before one has been seen.
const guessedPull = time.Minute

// ordersKept is how long an order is remembered: longer than any pull takes.
const ordersKept = time.Hour

// failureLimit is the share of failed launches from which on chance isn't the reason.
const failureLimit = 0.25

// A new outcome counts as much as the last outcomesKept together, and a new time as much
// as the last timesKept.
const outcomesKept, timesKept = 64, 8

// scope is a set of groups whose launches are limited together.
type scope struct {
	launch window // from the order until the node is ready
	pull   window // from there until its first pod runs
	// pullTime is the mean time of the latest pulls, and bestPull what it would have been at
	// best; known once there was one. A node that got no pod counts as a pull that took no
	// time.
	pullTime, bestPull time.Duration
	pullTimeKnown      bool
	orders             []order // of the last ordersKept, oldest first
	outcomes
	held time.Time // when nodes were last held back
}

// order is a number of nodes that were ordered at a time.
type order struct {
	at    time.Time
	nodes int
}

func newScope() *scope {
	return &scope{launch: window{size: firstLaunchWindow, starting: true}, pull: window{size: firstPullWindow}}
}

func (s *scope) ordered(now time.Time, nodes int) {
	s.orders = append(recentOrders(s.orders, now), order{now, nodes})
}

// recentOrders leaves out the orders, of which the oldest is the first, that are older than
// ordersKept.
func recentOrders(list []order, now time.Time) []order {
	for len(list) > 0 && now.Sub(list[0].at) > ordersKept {
		list = list[1:]
	}
	return list
}

// spacing returns the time in which as many nodes may be ordered as the pull window has. It
// is longer than a pull, since not every node starts to pull exactly when it should. Pulls
// that take longer than slowTime shrink the window: the spacing needn't grow with them too.
func (s *scope) spacing() time.Duration {
	if !s.pullTimeKnown {
		return guessedPull
	}
	return min(s.pullTime, time.Duration(slowTime*float64(s.bestPull))) * 5 / 4
}

// recent returns how many nodes were ordered within the spacing, and when that number next
// falls; zero for never.
func (s *scope) recent(now time.Time) (nodes int, until time.Time) {
	for i := len(s.orders) - 1; i >= 0; i-- {
		end := s.orders[i].at.Add(s.spacing())
		if !end.After(now) {
			break
		}
		nodes += s.orders[i].nodes
		until = end
	}
	return nodes, until
}

// room returns how many more nodes may be ordered now, so that leastWindow nodes may always
// be coming. Nodes that pull beyond the pull window count as if they were ordered now.
func (s *scope) room(now time.Time, coming, pulling int) int {
	recent, _ := s.recent(now)
	over := max(pulling-int(s.pull.size), 0)
	room := min(int(s.launch.size)-coming, int(s.pull.size)-recent-over)
	return max(room, leastWindow-coming, 0)
}

// becameReady takes how a node that was ordered at a time became ready.
func (s *scope) becameReady(now, ordered time.Time, slowness float64) {
	s.launch.passed(now, ordered, slowness, 1, s.filledSince(ordered))
}

// started takes how long it took a node from being ready to running its first pod.
func (s *scope) started(now, ordered time.Time, took time.Duration, slowness float64) {
	s.pass()
	if !s.pullTimeKnown {
		s.pullTime, s.bestPull, s.pullTimeKnown = took, best(took, slowness), true
	}
	s.pullTime += (took - s.pullTime) / timesKept
	s.bestPull += (best(took, slowness) - s.bestPull) / timesKept
	share := 1.0
	if all := now.Sub(ordered); !ordered.IsZero() && all > 0 {
		share = took.Seconds() / all.Seconds()
	}
	s.pull.passed(now, ordered, slowness, share, s.filledSince(ordered))
}

// hasFailed records that a launch failed, while so many others are coming. Only if launches
// are also slow, or more fail than by chance, the reason may be load.
func (s *scope) hasFailed(now, ordered time.Time, coming int) {
	s.fail()
	if max(s.launch.slowness, s.pull.slowness) > fineTime || s.failing(coming) {
		s.launch.shrink(now, ordered, failureShrink)
		s.pull.shrink(now, ordered, failureShrink)
	}
}

func (s *scope) filledSince(ordered time.Time) bool { return !s.held.Before(ordered) }
