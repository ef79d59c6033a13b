package cluster

// This file says when what rules sign of pods may have changed.

// SignatureVersion changes when all pods have to be signed again because rules now
// read something else of them, or because other headrooms may admit them.
func (s *State) SignatureVersion() uint64 {
	return s.terms.read + s.headrooms.changes
}

// SignatureInputs changes whenever a pod may be signed otherwise than before, but for what its
// claims lead to: that changes as pods are placed and nominated, too. While it is the same,
// signing anew can be saved. SignatureVersion and Reclassifiers say when it must be done even for
// pods that wait; what only scores isn't worth that.
func (s *State) SignatureInputs() uint64 { return s.SignatureVersion() + s.images.known + s.objectsSet }

// noteSignatureInput counts a change of an object, or of a workload, that rules read. CSINodes don't
// count, and neither do ResourceSlices: no rule signs what depends on a node. Plans set some for each node
// that they try, and would otherwise sign all pods again.
func (s *State) noteSignatureInput(c *Change) {
	if c.Op == WorkloadSet || c.Op == ObjectSet && c.Object.Kind() != CSINodeKind && c.Object.Kind() != ResourceSliceKind {
		s.objectsSet++
	}
	if c.Op == ObjectSet && describe(c.Object.Kind()).readEverywhere() {
		s.readEverywhere++
	}
}

// ReadEverywhere changes whenever an object does that local rules may read for any node, such as a
// CSIDriver or a DeviceClass. While it is the same, so is what they say of a node of which nothing has
// changed, to a pod without claims.
func (s *State) ReadEverywhere() uint64 { return s.readEverywhere }
