package live

import (
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
)

// sharedClaims has the binds of pods that share a claim write it one after the other: at the same time they
// would meet each other's conflicts, and read it again. What must hold:
//
//   - Whoever has the turn begins with what the one before has left, which the cache may not have yet.
//   - It writes the reservations of all that wait for the turn, too, up to the number that a claim may have. A bind takes back what another may have
//     written for it as if it had written that itself.
//   - A claim is remembered until the core was told of the last of these binds.
type sharedClaims struct {
	mu    sync.Mutex
	turns map[string]*claimTurn // by namespace and name of the claim; guarded by mu
}

// claimTurn is the turn to write one claim.
type claimTurn struct {
	key   string
	taken chan struct{} // has a token while somebody has the turn
	// newest is the claim as the last one has left it, nil when that isn't known. Whoever has the turn owns
	// it, and nobody changes what it points to.
	newest *resourcev1.ResourceClaim
	// Guarded by the mu of sharedClaims.
	binds int                                         // that have not left
	met   bool                                        // there were several at a time
	queue []resourcev1.ResourceClaimConsumerReference // the pods of those that wait
}

// reference returns what reserves a claim for the pod of a bind.
func (p *claimsOfBind) reference() resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.bind.Name, UID: p.bind.UID}
}

// await returns when it is a bind's turn to write a claim. From then until end nobody else of this process
// reserves it; from before that on, others may write the bind's reservation with theirs.
func (s *sharedClaims) await(p *claimsOfBind, want *resourcev1.ResourceClaim) *claimTurn {
	key := want.Namespace + "/" + want.Name
	s.mu.Lock()
	t := s.turns[key]
	if t == nil {
		t = &claimTurn{key: key, taken: make(chan struct{}, 1)}
		s.turns[key] = t
	}
	t.binds++
	t.met = t.met || t.binds > 1
	t.queue = append(t.queue, p.reference())
	s.mu.Unlock()
	p.turns = append(p.turns, t)
	t.taken <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.met {
		p.touch(want)
	}
	t.queue = slices.DeleteFunc(t.queue, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == p.bind.UID })
	return t
}

// end lets the next one have the turn.
func (t *claimTurn) end() { <-t.taken }

// waiting returns the pods of the binds that wait for a turn.
func (s *sharedClaims) waiting(t *claimTurn) []resourcev1.ResourceClaimConsumerReference {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(t.queue)
}

// leave forgets the claims of a bind that nobody else is about to write.
func (s *sharedClaims) leave(p *claimsOfBind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range p.turns {
		if t.binds--; t.binds == 0 {
			delete(s.turns, t.key)
		}
	}
	p.turns = nil
}
