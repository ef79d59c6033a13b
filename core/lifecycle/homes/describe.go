package homes

import "k8s.io/apimachinery/pkg/types"

// Of returns the node on which room is kept for the replacement of a pod that has to leave its
// own, "" while none has room; ok is false for any other pod.
func (m *Machine) Of(pod types.UID) (node string, ok bool) {
	h := m.byPod[pod]
	if h == nil {
		return "", false
	}
	return h.node, true
}
