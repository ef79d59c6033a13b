package sim

import "time"

// This file takes samples of a world, for the report's plots. What must hold: a sample is
// taken only when something has changed, so that a long quiet time costs nothing.

// Sample is the world at one time. Pods and nodes are counts of that instant; launching instances
// aren't nodes yet, and draining nodes are none of the ready ones.
type Sample struct {
	// At is virtual time since the beginning, never before that of the sample before.
	At time.Duration
	// Pods by state; those that have completed are counted from the beginning.
	Pending, Bound, Running, Completed int
	// Instances by state. What has failed to launch is in none.
	Launching, Starting, Ready, Draining int
	CPU, Memory                          float64 // requested shares of ready nodes' allocatable
	Cost                                 float64 // so far
	Price                                float64 // per hour
	WriteRate                            float64 // bytes a second, of boots and pulls
}

// sampleEvery is the least time between two samples.
const sampleEvery = 5 * time.Second

// sample takes a sample if something has changed, and sampleEvery has passed since the
// last one.
func (s *Stats) sample() {
	if !s.dirty || len(s.Samples) > 0 && s.w.now-s.Samples[len(s.Samples)-1].At < sampleEvery {
		return
	}
	s.dirty = false
	s.Samples = append(s.Samples, s.now(s.w.now))
}

// sampleOwed takes the sample that sample has put off, if its time comes before what happens next, which is at a time
// until which nothing changes. Otherwise a state that lasts would only be seen at its end.
func (s *Stats) sampleOwed(next time.Duration) {
	if !s.dirty || len(s.Samples) == 0 {
		return
	}
	if at := s.Samples[len(s.Samples)-1].At + sampleEvery; at < next {
		s.dirty = false
		s.Samples = append(s.Samples, s.now(at))
	}
}

// now returns a sample of the world as it is, in O(instances), at a time until which nothing else happens.
func (s *Stats) now(at time.Duration) Sample {
	launching := 0
	for _, g := range s.w.groups {
		for _, m := range g.instances {
			if m.state < registered && m.failed == "" {
				launching++
			}
		}
	}
	s.Launching = launching
	rate := 0.0
	for _, c := range s.w.storage.classes {
		if len(c.flows) > 0 {
			rate += c.rate * float64(len(c.flows))
		}
	}
	return Sample{
		At: at, Pending: s.Pending, Bound: s.Bound, Running: s.Running, Completed: s.Pods.Completed,
		Launching: launching, Starting: s.Starting, Ready: s.Ready, Draining: s.Draining,
		CPU: share(float64(s.requestedCPU), float64(s.readyCPU)), Memory: share(float64(s.requestedMemory), float64(s.readyMemory)),
		Cost: s.Cost + s.price*(at-s.integrated).Hours(), Price: s.price, WriteRate: rate,
	}
}
