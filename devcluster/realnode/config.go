package realnode

import (
	"fmt"
	"os"
	"path/filepath"
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
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "%[1]s/addresses", "ranges": [[{"subnet": "10.88.0.0/24"}]]}}
]}
`

// kubeletConfig evicts no pod and collects no image for want of disk: the machine isn't the node's alone.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
podLogsDir: %[1]s/logs
address: 127.0.0.1
port: %[3]d
healthzPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
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

// configure writes the files that the node's programs read.
func (n *Node) configure() error {
	for name, text := range map[string]string{"containerd.toml": containerdConfig, "cni/10-real-node.conflist": network, "kubelet.yaml": kubeletConfig} {
		path := n.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, text+"%[4]s", n.o.Dir, n.o.Programs, n.o.Port, ""), 0o600); err != nil {
			return err
		}
	}
	return nil
}
