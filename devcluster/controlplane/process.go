package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// This file is a subprocess: its start, its end, and what it has used. What must hold: it
// ends when its parent does, also when the parent is killed (on Linux).

// Process is a subprocess. Its methods may be called by several goroutines.
type Process struct {
	Name     string
	cmd      *exec.Cmd
	log      string        // path of the file with its output
	done     chan struct{} // closed when it has ended
	err      error         // why it ended; read after done
	stopping atomic.Bool   // Stop was called: its end is no error
}

// StartProcess starts a program that writes its output to a log file.
func StartProcess(name, log, program string, args ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = f, f
	// A process group of its own: Ctrl-C goes to the parent only, which stops its
	// subprocesses in order.
	cmd.SysProcAttr = dieWithParent()
	p := &Process{Name: name, cmd: cmd, log: log, done: make(chan struct{})}
	if err := start(cmd); err != nil {
		return nil, err
	}
	go func() {
		err := cmd.Wait()
		if !p.stopping.Load() {
			p.err = fmt.Errorf("%s stopped unexpectedly (%v); the end of its log:\n%s", name, err, tail(log, 15))
		}
		close(p.done)
	}()
	return p, nil
}

// Wait returns when the process has ended, with an error unless Stop ended it.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Stop asks the process to end, and kills it when it hasn't within the limit.
func (p *Process) Stop(limit time.Duration) {
	p.stopping.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error says that it has ended already
	select {
	case <-p.done:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Kill ends the process as kill -9 does, without a chance to release a Lease or to write
// anything. Wait returns an error then.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Signal sends the process a signal, such as SIGSTOP.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Usage is what a process has used since its start, and its memory now.
type Usage struct {
	CPU          time.Duration
	RSS, PeakRSS int64 // bytes
}

// Usage returns what the process has used, from /proc; zero where there is none, and when
// the process has ended.
func (p *Process) Usage() Usage {
	var u Usage
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	if raw, err := os.ReadFile(dir + "stat"); err == nil {
		// Fields after the parenthesised name: state is the 3rd, utime the 14th.
		_, rest, _ := bytes.Cut(raw, []byte(") "))
		if f := strings.Fields(string(rest)); len(f) > 12 {
			user, _ := strconv.ParseInt(f[11], 10, 64)
			system, _ := strconv.ParseInt(f[12], 10, 64)
			u.CPU = time.Duration(user+system) * (time.Second / 100) // USER_HZ is 100 on Linux
		}
	}
	if raw, err := os.ReadFile(dir + "status"); err == nil {
		for line := range strings.Lines(string(raw)) {
			for field, to := range map[string]*int64{"VmHWM:": &u.PeakRSS, "VmRSS:": &u.RSS} {
				if v, ok := strings.CutPrefix(line, field); ok {
					kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
					*to = kb << 10
				}
			}
		}
	}
	return u
}

// tail returns the last lines of a file, or the error of reading it.
func tail(path string, lines int) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
