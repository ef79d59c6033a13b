package realnode

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// This file makes and removes the control group of a node, in each hierarchy that this machine has mounted: several with
// version 1, one with version 2. The kubelet wants it to exist before it starts.

// cgroup returns the name of the node's control group. Two nodes of one name, of two clusters, have two.
func (n *Node) cgroup() string { return fmt.Sprintf("berth-%s-%d", n.o.Name, n.o.Port) }

// hierarchies returns where control groups are mounted.
func hierarchies() (out []string, err error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			out = append(out, fields[1])
		}
	}
	return out, nil
}

// makeCgroup makes the node's control group.
func (n *Node) makeCgroup() error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if err := os.MkdirAll(filepath.Join(m, n.cgroup()), 0o755); err != nil {
			return fmt.Errorf("making a control group for the node's pods: %w", err)
		}
	}
	return nil
}

// removeCgroup removes it with those of its pods, the innermost first. A process that was killed may be in one for a moment.
func (n *Node) removeCgroup() error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			err := removeGroups(filepath.Join(m, n.cgroup()))
			if err == nil {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("removing the control group of the node's pods: %w", err)
			}
		}
	}
	return nil
}

// removeGroups removes a control group with those below it. Their files go with them.
func removeGroups(root string) error {
	var groups []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && e.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range slices.Backward(groups) {
		if err := os.Remove(g); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
