package reach

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// This file refuses flags with impossible values before anybody is asked.

// Validate refuses flags that can't be used, and files that they name and that aren't there, before anybody is asked.
func (f *Flags) Validate() error {
	if f.Server != "" {
		if _, err := f.address(); err != nil {
			return err
		}
		if err := f.besideServer(); err != nil {
			return err
		}
	} else if err := f.needServer(); err != nil {
		return err
	}
	for _, object := range []struct{ flag, value, what string }{
		{"--pod", f.Pod, "the pod of Berth"}, {"--lease", f.Lease, "the Lease"}, {"--service-account", f.ServiceAccount, "the service account of Berth's pods"},
	} {
		if namespace, name, ok := strings.Cut(object.value, "/"); object.value != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
			return fmt.Errorf("%s is %q; it must be %s as NAMESPACE/NAME", object.flag, object.value, object.what)
		}
	}
	if f.Port < 0 || f.Port > 65535 {
		return fmt.Errorf("--port is %d; it must be from 1 to 65535, or 0 for the one in the Lease", f.Port)
	}
	if err := f.validateKube(); err != nil {
		return err
	}
	for _, file := range []struct{ flag, path string }{{"--kubeconfig", f.Kubeconfig}, {"--token-file", f.TokenFile}, {"--certificate-authority", f.CA}} {
		if file.path == "" {
			continue
		}
		if _, err := os.Stat(file.path); err != nil {
			return fmt.Errorf("%s: %w; give the path of a file", file.flag, err)
		}
	}
	return nil
}

// RefuseBeside returns an error that names the flags which the command line has of these, nil when it has none. what is
// the flag that leaves nothing for them to do, because no running Berth is queried.
func (f *Flags) RefuseBeside(what string) error {
	var given []string
	f.registered.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			given = append(given, "--"+flag.Name)
		}
	})
	if len(given) == 0 {
		return nil
	}
	slices.Sort(given)
	return fmt.Errorf("%s and %s can't be given together: with %[2]s no running Berth is queried; omit one or the other", strings.Join(given, ", "), what)
}

// besideServer refuses flags that mean nothing with --server: they say which pod is queried through the API server.
func (f *Flags) besideServer() error {
	for _, x := range []struct {
		flag  string
		given bool
	}{{"--pod", f.Pod != ""}, {"--port", f.Port != 0}, {"--service-account", f.ServiceAccount != ""}} {
		if x.given {
			return fmt.Errorf("%s and --server can't be given together: with --server that address is queried, and no pod; omit one or the other", x.flag)
		}
	}
	return nil
}

// needServer refuses flags that mean nothing without --server.
func (f *Flags) needServer() error {
	for _, x := range []struct {
		flag  string
		given bool
	}{{"--token-file", f.TokenFile != ""}, {"--insecure-skip-tls-verify", f.Insecure}} {
		if x.given {
			return fmt.Errorf("%s needs --server; without it the credentials come from the kubeconfig, and the fingerprint of Berth's certificate from the Lease", x.flag)
		}
	}
	return nil
}

// validateKube refuses those flags of kubectl's that client-go would take without a word.
func (f *Flags) validateKube() error {
	k := f.kubeFlags()
	if timeout := *k.Timeout; timeout != "" {
		if _, err := clientcmd.ParseTimeout(timeout); err != nil {
			return fmt.Errorf("--request-timeout is %q; it must be a duration such as 30s, or 0 for the default", timeout)
		}
	}
	if *k.Impersonate == "" && (*k.ImpersonateUID != "" || len(*k.ImpersonateGroup) > 0 || len(*k.ImpersonateUserExtra) > 0) {
		return errors.New("--as-uid, --as-group and --as-user-extra say more about the user of --as; give --as, too")
	}
	for _, extra := range *k.ImpersonateUserExtra {
		if key, _, ok := strings.Cut(extra, "="); !ok || key == "" {
			return fmt.Errorf("--as-user-extra is %q; it must be KEY=VALUE", extra)
		}
	}
	if f.Server != "" && (f.TokenFile != "" || f.Insecure) && *k.CertFile+*k.KeyFile != "" {
		return errors.New("--client-certificate and --client-key are not sent with --token-file or --insecure-skip-tls-verify; omit those, so that Berth's certificate is verified, or these")
	}
	return nil
}
