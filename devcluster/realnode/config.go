package realnode

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// containerdConfig leaves oom scores as they are: to lower them takes a capability that a machine within a machine
// may lack.
const containerdConfig = `version = 3
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/containerd.sock"
[ttrpc]
  address = "%[1]s/containerd.sock.ttrpc"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "` + Image + `"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["%[2]s/cni"]
  conf_dir = "%[1]s/cni"
`

// network gives each pod a pair of interfaces and an address that only this machine knows.
const network = `{"cniVersion": "1.0.0", "name": "real-node", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "%[1]s/addresses", "ranges": [[{"subnet": "10.88.%[4]d.0/24"}]]}}
]}
`

// kubeletConfig puts the control groups of all pods below one of the node's own: kubelets remove those of pods that they
// don't know, which another node of this machine may have. It evicts no pod and collects no image for want of disk: the machine isn't the node's alone.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
podLogsDir: %[1]s/logs
port: %[3]d
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %[1]s/ca.crt}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /%[5]s
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
enforceNodeAllocatable: []
evictionHard: {imagefs.available: 1Mi, nodefs.available: 1Mi, memory.available: 1Mi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
resolvConf: ""
nodeStatusUpdateFrequency: 5s
syncFrequency: 5s
`

// authority returns the certificates that sign those of the cluster's programs. Whoever has such a certificate may use the
// kubelet, which serves on all of this machine's addresses, and nobody else.
func authority(kubeconfig string) ([]byte, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	if len(cfg.CAData) == 0 {
		return os.ReadFile(cfg.CAFile)
	}
	return cfg.CAData, nil
}

// configure writes the files that the node's programs read.
func (n *Node) configure() error {
	ca, err := authority(n.o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading who signs the cluster's certificates: %w", err)
	}
	for name, text := range map[string]string{"containerd.toml": containerdConfig, "cni/10-real-node.conflist": network, "kubelet.yaml": kubeletConfig} {
		path := n.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, text+"%[6]s", n.o.Dir, n.o.Programs, n.o.Port, n.o.Network, n.cgroup(), ""), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(n.path("ca.crt"), ca, 0o600)
}
