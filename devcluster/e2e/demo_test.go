package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// This file runs the demo's own program, as make demo does: with fewer pods.

var demoOnce = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(berth), "demo")
	out, err := exec.Command("go", "build", "-ldflags=-w", "-o", program, "../cmd/demo").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return program, nil
})

// startDemo starts the demo in a process group of its own, as a shell does.
func startDemo(t *testing.T) *upProcess {
	t.Helper()
	program, err := demoOnce()
	if err != nil {
		t.Fatal(err)
	}
	u := &upProcess{t: t, tmp: t.TempDir(), ended: make(chan error, 1)}
	u.cmd = exec.Command(program, "--berth", berth, "--groups", filepath.Join("..", "..", "examples", "demo", "groups.yaml"), "--scale", "5", "--services", "2")
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	u.start()
	return u
}

// TestDemo plays the demo, and in the middle of it watches Berth by the commands that the demo
// prints.
func TestDemo(t *testing.T) {
	u := startDemo(t)
	u.shows("submitted ")
	printed := regexp.MustCompile(`(?m)^  (\S+) (top|explain nodes) (--kubeconfig .*)$`).FindAllStringSubmatch(u.output(), -1)
	if len(printed) != 2 {
		t.Fatalf("%d commands are printed, want two:\n%s", len(printed), u.output())
	}
	for i := range printed {
		args := strings.Fields(printed[i][2] + " " + printed[i][3])
		out, err := exec.CommandContext(t.Context(), printed[i][1], args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "nodes") {
			t.Errorf("%s: %v\n%s\nwant something about nodes", strings.Join(args, " "), err, out)
		}
	}
	if err := <-u.ended; err != nil {
		t.Fatalf("%v\n%s", err, u.output())
	}
	for _, want := range []string{"pods done ", "budgets ", "0 violations"} {
		if !strings.Contains(u.output(), want) {
			t.Errorf("the output has no %q:\n%s", want, u.output())
		}
	}
	u.leavesNothing()
}

// TestInterruptedDemoLeavesNothing interrupts the demo at ten moments, by Ctrl-C and by SIGTERM: no
// process and no folder stays.
func TestInterruptedDemoLeavesNothing(t *testing.T) {
	for i, moment := range []string{
		"starting etcd", "starting kube-controller-manager", "starting the node groups", "starting berth", "watch Berth in a second terminal",
		"submitted ", "running", "time to nothing again", "next, 2 services", "the batch is over",
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			u := startDemo(t)
			u.shows(moment)
			how := syscall.SIGINT
			if i%2 == 1 {
				how = syscall.SIGTERM
			}
			if err := syscall.Kill(-u.cmd.Process.Pid, how); err != nil {
				t.Fatal(err)
			}
			err := <-u.ended
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(u.output(), "demo: interrupted") {
				t.Errorf("%v, want the exit code 130:\n%s", err, u.output())
			}
			u.leavesNothing()
		})
	}
}

// shows waits until the output has a text.
func (u *upProcess) shows(text string) {
	u.t.Helper()
	eventually(u.t, text, func(context.Context) bool {
		if strings.Contains(u.output(), text) {
			return true
		}
		select {
		case err := <-u.ended:
			u.t.Fatalf("ended before it showed %q: %v\n%s", text, err, u.output())
		default:
		}
		return false
	})
}

// TestDemoSaysThatTheDiskIsFull has no room for the cluster's files, where a full disk can be had:
// /proc/self has no bytes free and takes no file.
func TestDemoSaysThatTheDiskIsFull(t *testing.T) {
	program, err := demoOnce()
	if err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"without a byte": "/proc/self", "that isn't there": filepath.Join(t.TempDir(), "none")} {
		cmd := exec.Command(program, "--berth", berth, "--groups", filepath.Join("..", "..", "examples", "demo", "groups.yaml"))
		cmd.Env = append(os.Environ(), "TMPDIR="+folder)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		ended := make(chan error, 1)
		go func() { ended <- cmd.Run() }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(out.String(), "TMPDIR") {
				t.Errorf("a folder %s: %v\n%s\nwant a word about TMPDIR", name, err, out.String())
			}
		case <-time.After(time.Minute):
			t.Errorf("with a folder %s it goes on", name)
		}
	}
}
