//go:build !linux

package controlplane

import (
	"os/exec"
	"syscall"
)

// dieWithParent only gives a process a group of its own: where there is no Pdeathsig, a
// parent that is killed leaves its subprocesses behind.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func start(cmd *exec.Cmd) error { return cmd.Start() }
