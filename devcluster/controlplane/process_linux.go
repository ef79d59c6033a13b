package controlplane

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent has the kernel kill a process when the thread that started it ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// spawner is the thread that starts all processes: the kernel sends Pdeathsig
// when the thread that started a process ends, so it has to be one that stays.
var spawner = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for f := range spawner {
			f()
		}
	}()
}

// start starts a process from the spawner's thread.
func start(cmd *exec.Cmd) error {
	done := make(chan error)
	spawner <- func() { done <- cmd.Start() }
	return <-done
}
