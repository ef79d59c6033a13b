package reach

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"
)

// TestPropertyCredentialsGoWhereTheAPIServerVouches draws Leases, the pods that they name, and what the user
// says about Berth's: a connection is opened exactly if the user names the pod, or the API server
// shows that the pod has Berth's namespace and service account.
func TestPropertyCredentialsGoWhereTheAPIServerVouches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		namespace := rapid.SampledFrom([]string{"", "kube-system", "own", "tenant"}).Draw(rt, "namespace in the Lease")
		account := rapid.SampledFrom([]string{"", "berth", "prod-berth", "csi-driver"}).Draw(rt, "service account of the pod")
		labels := map[string]string{}
		name := rapid.SampledFrom([]string{"", "berth", "other"}).Draw(rt, nameLabel)
		release := rapid.SampledFrom([]string{"berth", "prod"}).Draw(rt, instanceLabel)
		labels[nameLabel], labels[instanceLabel] = name, release
		flags := &Flags{ServiceAccount: rapid.SampledFrom([]string{"", "", "own/berth", "kube-system/csi-driver"}).Draw(rt, "--service-account")}
		if rapid.IntRange(0, 5).Draw(rt, "the user names a pod") == 0 {
			flags.Pod = cmp.Or(namespace, "kube-system") + "/p"
		}
		opened, err := openTo(t, flags, namespace, account, labels)

		in := cmp.Or(namespace, "kube-system")
		vouched := flags.Pod != ""
		if flags.ServiceAccount == "" {
			ofRelease := map[string]string{"berth": "berth", "prod": "prod-berth"}
			vouched = vouched || in == "kube-system" && name == "berth" && account == ofRelease[release]
		} else {
			vouched = vouched || in+"/"+account == flags.ServiceAccount
		}
		if opened != vouched {
			rt.Fatalf("a port-forward was asked for: %v; want %v for pod %s/p of account %q with labels %v, the flags %+v (%v)", opened, vouched, in, account, labels, *flags, err)
		}
	})
}
