package controlplane

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// This file says when there is too little room on a disk. The components would say so in their logs
// at best: a log may be what there is no room for.

// spaceNeeded is how many bytes the files of a cluster take with room to spare: etcd allocates a
// write-ahead log of 64 MB at a time.
const spaceNeeded = 512 << 20

// spaceLeft is how many bytes are free at least when a disk isn't what has stopped a process.
const spaceLeft = 64 << 20

// errNoSpace says that a disk is full, or will be.
var errNoSpace = errors.New("too little disk space")

// MakeTemp makes a temporary folder for a cluster or what belongs to it, which the caller has to
// remove.
func MakeTemp(prefix string) (string, error) {
	if err := checkSpace(os.TempDir(), spaceNeeded); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("making a temporary folder: %w; name another place with TMPDIR", err)
	}
	return folder, nil
}

// checkSpace returns an error unless the file system of a folder has so many bytes free.
func checkSpace(folder string, bytes uint64) error {
	free, err := freeSpace(folder)
	if err != nil || free >= bytes { // where it can't be said, the components find out
		return nil
	}
	return fmt.Errorf("%w: %s has %d MiB free, and the cluster needs some %d MiB; free some, or name another folder with TMPDIR", errNoSpace, folder, free>>20, bytes>>20)
}

// freeSpace returns how many bytes the user may write to the file system of a folder.
func freeSpace(folder string) (uint64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return 0, os.NewSyscallError("statfs", err)
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}
