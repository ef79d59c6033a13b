package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// This file has the addresses of servers: host:port, or the path of a unix socket, which nobody reaches but
// who may open the file.

// socketPrefix begins an address that is the path of a unix socket.
const socketPrefix = "unix://"

// maxSocketPath is how many bytes the path of a unix socket may have on Linux.
const maxSocketPath = 107

// socketOf returns the path of the unix socket that an address names; ok is false for host:port.
func socketOf(address string) (path string, ok bool) { return strings.CutPrefix(address, socketPrefix) }

// checkAddress returns what an address has to be, if it isn't.
func checkAddress(address string) error {
	if path, ok := socketOf(address); ok {
		if !filepath.IsAbs(path) || len(path) > maxSocketPath {
			return fmt.Errorf("after %s it must be an absolute path of at most %d bytes", socketPrefix, maxSocketPath)
		}
		return nil
	}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return errors.New("it must be host:port, or " + socketPrefix + " and the absolute path of a socket")
	}
	return nil
}

// Listen opens an address that MayListen allows. A socket that a server which has ended left behind is
// replaced; one at which a server answers isn't.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, socket := socketOf(address)
	if !socket {
		return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if c, err := (&net.Dialer{}).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("another server listens at %s", path), c.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil { // whoever may open it may delete nodes
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
