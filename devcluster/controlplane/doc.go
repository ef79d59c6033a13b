// Package controlplane runs a real Kubernetes control plane on loopback: etcd,
// kube-apiserver, kube-controller-manager and simulated kubelets, each as a
// subprocess of this same binary, so that their CPU time can be told apart.
package controlplane
