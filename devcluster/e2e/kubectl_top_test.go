package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// This file is kubectl berth top on a terminal, and users whose kubeconfig has no credentials but a
// program that gives them, as those of clouds have.

// TestKubectlTopAcrossLeaders has users whose credentials come from exec plugins, one a token and
// one a client certificate, watch the leader's pending pods on a terminal while it is killed. The screen
// stays, says that no answer comes, and goes on with the Berth that takes over; q ends it, and leaves
// the terminal as it was.
func TestKubectlTopAcrossLeaders(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	makeNode(t, client, "control-1", "8Gi")
	if err := c.IssueClient("emil", "emil", time.Hour); err != nil {
		t.Fatal(err)
	}
	files := c.ClientFiles("emil")
	read := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	sa := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "elsa"}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), sa, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "elsa", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	users := kubectlUsers(t, c, map[string]*clientcmdapi.AuthInfo{
		"elsa": execPlugin(t, clientauthenticationv1.ExecCredentialStatus{Token: token.Status.Token}),
		"emil": execPlugin(t, clientauthenticationv1.ExecCredentialStatus{ClientCertificateData: read(files.Cert), ClientKeyData: read(files.Key)}),
	})

	first, _ := startBerth(t, c, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(freePort(t)))
	eventually(t, "the first Berth to lead", holds(client, "berth"))
	_, secondLog := startBerth(t, c, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(freePort(t)))
	eventually(t, "the second Berth to stand by", logs(secondLog, "standing by: another instance is the leader"))
	podOfBerth(t, client, "control-1")
	viewers := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "elsa"}, {APIGroup: rbacv1.GroupName, Kind: "User", Name: "emil"}}
	bindViewer(t, client, "berth-viewer-base", viewers...)
	letListPods(t, client, viewers...)
	create(t, client, pod("before", "64"))

	screens := map[string]*terminal{}
	for name, u := range users {
		within(t, "an answer for "+name, time.Minute, func(ctx context.Context) bool {
			out, err := u.berth(ctx, "status")
			return err == nil && strings.Contains(out, "default/before")
		})
		screens[name] = u.top(t)
	}
	for name, s := range screens {
		s.shows(name+" the first leader's nodes", "control-1", "q quits", "live")
		s.types("3")
		s.shows(name+" its pending pods", "default/before", "Insufficient cpu", "q quits", "live")
	}
	first.Kill()
	for name, s := range screens {
		s.shows(name+" that no answer comes, under what was known", "default/before", "no response since ")
	}
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	create(t, client, pod("after", "64"))
	for name, s := range screens {
		s.shows(name+" the second leader's pending pods", "default/after", "q quits", "live")
		if screen := s.seen(); strings.Contains(screen, "default/before") {
			t.Errorf("a pod that was deleted is still on the screen of %s:\n%s", name, screen)
		}
		s.quit(name)
	}
}

// execPlugin returns credentials that a program gives, as a kubeconfig names it.
func execPlugin(t *testing.T, status clientauthenticationv1.ExecCredentialStatus) *clientcmdapi.AuthInfo {
	t.Helper()
	version := clientauthenticationv1.SchemeGroupVersion.String()
	raw, err := json.Marshal(clientauthenticationv1.ExecCredential{TypeMeta: metav1.TypeMeta{Kind: "ExecCredential", APIVersion: version}, Status: &status})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{APIVersion: version, Command: "cat", Args: []string{path}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
}

// terminal is a terminal of 40 lines on which kubectl berth top runs.
type terminal struct {
	t           *testing.T
	user, inner *os.File // what a person types and sees, and what the program reads and writes
	before      *unix.Termios
	ended       chan error
	// screen is what a person sees: the program writes what has changed on it alone.
	screen *vt.SafeEmulator
}

// top runs kubectl berth top on a terminal, until the test ends or quit.
func (u *kubectlUser) top(t *testing.T) *terminal {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &terminal{t: t, ended: make(chan error, 1), screen: vt.NewSafeEmulator(160, 40)}
	var err error
	s.user, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(err)
	fd := int(s.user.Fd())
	must(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(err)
	must(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 160}))
	s.inner, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(err)
	s.before, err = unix.IoctlGetTermios(int(s.inner.Fd()), unix.TCGETS)
	must(err)
	go func() { _, _ = io.Copy(s.screen, s.user) }()
	go func() { _, _ = io.Copy(s.user, s.screen) }() // what a terminal answers when it is asked what it can do
	cmd := exec.Command(filepath.Join(u.folder, "kubectl-berth"), "top", "--interval", "500ms")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig, "NO_COLOR=1", "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.inner, s.inner, s.inner
	must(cmd.Start())
	go func() { s.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		s.inner.Close() // ends the reading
	})
	return s
}

// seen returns the text on the screen.
func (s *terminal) seen() string { return ansi.Strip(s.screen.Render()) }

// types types keys.
func (s *terminal) types(keys string) {
	s.t.Helper()
	if _, err := s.user.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until the screen has all of some texts.
func (s *terminal) shows(what string, texts ...string) {
	s.t.Helper()
	screen := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the screen is\n%s\nwant all of %q", screen, texts)
		}
	}()
	within(s.t, what, time.Minute, func(context.Context) bool {
		screen = s.seen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// quit types q, and fails unless the program ends well and leaves the terminal as it was.
func (s *terminal) quit(name string) {
	s.t.Helper()
	s.types("q")
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("after q the top of %s ends with %v", name, err)
		}
	case <-time.After(10 * time.Second):
		s.t.Fatalf("10 seconds after q the top of %s runs on", name)
	}
	now, err := unix.IoctlGetTermios(int(s.inner.Fd()), unix.TCGETS)
	if err != nil || *now != *s.before {
		s.t.Errorf("%s has the terminal %+v (%v) after top, before it was %+v", name, now, err, s.before)
	}
	within(s.t, "what was on the screen before to come back", 10*time.Second, func(context.Context) bool {
		return !s.screen.IsAltScreen() && !strings.Contains(s.seen(), "default/")
	})
}
