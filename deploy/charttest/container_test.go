package charttest

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file runs the one container of the chart's Deployment as near to a kubelet as a machine
// without a container runtime can: the image's program in a root file system of its own that has
// what the image has and what the pod mounts, and that the user of the pod can't write to; the
// arguments and the environment of the pod; and the token of its service account.

// container is a running container of a Deployment's pod.
type container struct {
	cmd   *exec.Cmd
	ended chan error
	log   string // path
}

// runContainer runs the container of Berth of a Deployment, which is stopped with the test.
func (c *cluster) runContainer(name string) *container {
	c.t.Helper()
	pod := c.podOf(name)
	return c.run(pod, &pod.Containers[0])
}

// podOf returns the pods of a Deployment.
func (c *cluster) podOf(deployment string) *v1.PodSpec {
	c.t.Helper()
	d, err := c.client.AppsV1().Deployments(namespace).Get(c.t.Context(), deployment, metav1.GetOptions{})
	must(c.t, err)
	return &d.Spec.Template.Spec
}

// run runs a container of a pod, which is stopped with the test. Its image is Berth's.
func (c *cluster) run(pod *v1.PodSpec, spec *v1.Container) *container {
	t := c.t
	t.Helper()
	if s := spec.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || pod.SecurityContext.RunAsUser == nil || *pod.SecurityContext.RunAsUser == 0 {
		t.Fatal("the container may write to its root file system, or runs as root")
	}
	root := t.TempDir()
	img := imageOf(t)
	must(t, os.CopyFS(root, os.DirFS(img.root)))
	writeFile(t, filepath.Join(root, "etc/hosts"), "127.0.0.1 localhost\n")
	c.mount(root, pod, spec.VolumeMounts)
	if at := filepath.Join(root, serviceAccount); !exists(at) {
		c.mountAccount(at, pod.ServiceAccountName)
	}
	must(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o444)
		if e.IsDir() || path == filepath.Join(root, entrypoint) {
			mode = 0o555
		}
		return os.Chmod(path, mode)
	}))
	out := &container{log: filepath.Join(t.TempDir(), "log"), ended: make(chan error, 1)}
	log, err := os.Create(out.log)
	must(t, err)
	defer log.Close()
	server, err := url.Parse(c.config.Host)
	must(t, err)
	out.cmd = exec.Command(img.config.Config.Entrypoint[0], spec.Args...)
	out.cmd.Stdout, out.cmd.Stderr, out.cmd.Dir = log, log, "/"
	out.cmd.Env = append(slices.Clone(img.config.Config.Env), "KUBERNETES_SERVICE_HOST="+server.Hostname(), "KUBERNETES_SERVICE_PORT="+server.Port())
	out.cmd.SysProcAttr = confined(root, uint32(*pod.SecurityContext.RunAsUser), uint32(*pod.SecurityContext.RunAsGroup))
	must(t, out.cmd.Start())
	go func() { out.ended <- out.cmd.Wait() }()
	t.Cleanup(func() {
		_ = out.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", spec.Name, out.said())
		}
	})
	return out
}

// said returns what the container has written.
func (x *container) said() string {
	raw, _ := os.ReadFile(x.log)
	return string(raw)
}

// serviceAccount is where a kubelet mounts the token of a pod, unless the container has a volume there.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// mount writes the files of the ConfigMaps and Secrets that a pod mounts to where it mounts them.
func (c *cluster) mount(root string, pod *v1.PodSpec, mounts []v1.VolumeMount) {
	for _, m := range mounts {
		at := slices.IndexFunc(pod.Volumes, func(v v1.Volume) bool { return v.Name == m.Name })
		if at < 0 {
			c.t.Fatalf("the pod has no volume %s, which is to be mounted at %s", m.Name, m.MountPath)
		}
		if pod.Volumes[at].Projected != nil && m.MountPath == serviceAccount {
			continue // the API server's own, which mountAccount stands for
		}
		must(c.t, os.MkdirAll(filepath.Join(root, m.MountPath), 0o755))
		for name, text := range c.filesOf(&pod.Volumes[at]) {
			writeFile(c.t, filepath.Join(root, m.MountPath, name), text)
		}
	}
}

// filesOf returns the files of a volume.
func (c *cluster) filesOf(v *v1.Volume) map[string]string {
	switch {
	case v.ConfigMap != nil:
		files, err := c.client.CoreV1().ConfigMaps(namespace).Get(c.t.Context(), v.ConfigMap.Name, metav1.GetOptions{})
		must(c.t, err)
		return files.Data
	case v.Secret != nil:
		files, err := c.client.CoreV1().Secrets(namespace).Get(c.t.Context(), v.Secret.SecretName, metav1.GetOptions{})
		must(c.t, err)
		out := map[string]string{}
		for name, text := range files.Data {
			out[name] = string(text)
		}
		return out
	case v.EmptyDir != nil:
		return nil
	}
	c.t.Fatalf("the test can't mount the volume %+v", v)
	return nil
}

// mountAccount writes what a kubelet mounts of a service account.
func (c *cluster) mountAccount(dir, name string) {
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(c.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(c.t, err)
	writeFile(c.t, filepath.Join(dir, "token"), token.Status.Token)
	writeFile(c.t, filepath.Join(dir, "ca.crt"), string(c.config.CAData))
	writeFile(c.t, filepath.Join(dir, "namespace"), namespace)
}

// confined has a process see nothing but a folder, as a user and group. Somebody who isn't
// root may do that in a user namespace, in which the user is theirs.
func confined(root string, uid, gid uint32) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		a.Credential = &syscall.Credential{Uid: uid, Gid: gid}
		return a
	}
	a.Cloneflags = syscall.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(uid), HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(gid), HostID: os.Getgid(), Size: 1}}
	return a
}

// stop asks the process to end, as a kubelet does, and returns how it has ended.
func (x *container) stop() error {
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-x.ended:
		return err
	case <-time.After(30 * time.Second):
		return fmt.Errorf("it has not ended within 30 seconds of SIGTERM")
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// writeFrom writes what a reader has to a new file.
func writeFrom(path string, from io.Reader, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
