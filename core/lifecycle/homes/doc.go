// Package homes keeps room for the replacements of pods that are evicted to empty a node. The
// plan that has the node removed has found a node for each of them, its home; before an interruption or for a
// resize it is looked for, and bought if need be (Anticipate). The room there
// is kept by a stand-in (core/lifecycle/standins.go), nominated to the home, so that no other pod
// of equal or lower priority takes it; one of higher priority may. The replacement, which is
// the next pod of the same owner, gets the home when it arrives: the stand-in goes, and the
// pod has a place there (core/lifecycle/reservation), which binds it without a search.
//
//	a home is  from                         waits for                       then
//	kept       Reserve or Anticipate: the   PodEvicted; or the API shows    expected
//	           pod is on its node still     the pod terminating or gone
//	                                        SuccessorRequested: its         expected
//	                                        Deployment is asked for one
//	                                        ReleaseUnevicted, ReleasePod:   ended: freed
//	                                        the pod isn't evicted
//	expected   its pod leaves, or has left  a new pod of the owner          ended: taken
//	                                        Config.Time; or the owner       ended: expired
//	                                        is gone, or lacks no pod for it
//
// Of either state a home may have lost its room: the node is gone, goes itself, or doesn't
// take the stand-in any more. Then the stand-in is tried elsewhere after each change, and is
// among the Displaced pods of the next plan's request. It asks for no new node, as the
// replacement will, unless Anticipate has made it: then the stand-in is queued like a pod.
//
// A stand-in claims devices as the replacement will, by resource claims that are in no API (claims.go). The engine
// keeps devices for it on its node as it keeps CPU: whoever else asks for some is asked beside it. So it does for the
// replacement's place, until that is bound. A device that several nodes reach isn't kept from pods on the other nodes.
//
// Which pods of an owner are replacements isn't known, only how many: each pod of it that
// arrives after one has left ends one home, that of a pod with its name if there is one.
//
// A successor that is made while its pod stays (SuccessorRequested) is of another ReplicaSet of
// the same Deployment: the home of such a pod is that Deployment's, and is taken by the next pod
// of any of its ReplicaSets. Until the pod is told to leave, the count of its ReplicaSet says nothing.
//
// Of an owner as many homes are kept as it lacks pods, the ones kept first: the others end when it
// has said so after their pods left (cluster.Replicas), and for settleTime: watches of pods and of
// owners are apart, so the replacement may be shown later than its owner's count. A StatefulSet
// keeps all of its homes until it lacks no pod. Owners of kinds that aren't read, and pods without an owner, have
// their homes kept for Config.Time.
//
// With Config.NoRoom no room is kept: the same entries say which pods are displaced, as
// Cluster Autoscaler has it.
//
// Nothing of this outlives the process, and nothing is in the API. After a restart the
// replacements are placed by a search.
package homes
