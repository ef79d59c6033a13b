// Package nodefilters has the rules that ask one node about one field: whether the pod names
// another node, whether its host ports are free, whether the node is cordoned, and whether its
// kubelet declares the features that the pod needs. Each is a plugin of kube-scheduler's with the
// same name; rules that compare nodes or score them have packages of their own beside this one.
package nodefilters
