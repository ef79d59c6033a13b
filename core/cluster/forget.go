package cluster

// What the state has interned for readers: the terms of pods' affinity and the topologies of
// label keys. Both are looked up by names that users make up, and rollouts and new nodes bring
// new ones for ever. So they are forgotten again, but not one by one: looking for the others
// takes O(pods), and what goes with a rollout often comes back with the next. Everything else
// that grows with names goes with the last object that has them.

// Interned returns how many terms and topologies the state holds, needed or not.
func (s *State) Interned() int { return len(s.terms.list) + len(s.topo.list) }

// Forget forgets the terms that no pod has which is on a node or nominated to one, and the
// topologies that nobody holds, and what the allocator said of devices that no node has any more. It takes O(pods), and does nothing while a mark is open.
func (s *State) Forget() {
	if s.MarkOpen() {
		return
	}
	s.terms.forget(s)
	s.topo.forget()
	s.objects.devices.Forget()
}
