package storm

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// echo serves on a free port what it is told, line by line, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // ends with the connection
			}()
		}
	}()
	return l.Addr().String()
}

// caller is a connection through a proxy.
type caller struct {
	net.Conn
	lines *bufio.Reader
}

func call(t *testing.T, p *proxy) *caller {
	t.Helper()
	c, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &caller{c, bufio.NewReader(c)}
}

// answers reports whether the other end answers within a time.
func (c *caller) answers(within time.Duration) bool {
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return false
	}
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return false
	}
	line, err := c.lines.ReadString('\n')
	return err == nil && line == "hello\n"
}

// TestProxy: connections are let through, lose what is sent, are let through again, are
// refused, and are let through at the same address.
func TestProxy(t *testing.T) {
	p, err := newProxy("p", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.down()
	first := call(t, p)
	if !first.answers(5 * time.Second) {
		t.Fatal("no answer through the proxy")
	}
	if err := p.afflict(bothWays, "timeout", 1, map[string]int{"timeout": 0}); err != nil {
		t.Fatal(err)
	}
	if first.answers(300*time.Millisecond) || call(t, p).answers(300*time.Millisecond) {
		t.Error("an answer came out of the black hole")
	}
	p.heal(t.Context())
	if !call(t, p).answers(5 * time.Second) {
		t.Error("no answer through the healed proxy")
	}
	second := call(t, p)
	address := p.address()
	p.down()
	if second.answers(300 * time.Millisecond) {
		t.Error("a connection lives on when the proxy is down")
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("the proxy accepts connections when it is down")
	}
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	if p.address() != address || !call(t, p).answers(5*time.Second) {
		t.Errorf("no answer at %s, now at %s", address, p.address())
	}
}

// TestProxyDelays: what is late arrives in the end.
func TestProxyDelays(t *testing.T) {
	p, err := newProxy("p", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.down()
	if err := p.afflict(bothWays, "latency", 1, map[string]int{"latency": 60_000}); err != nil {
		t.Fatal(err)
	}
	c := call(t, p)
	if c.answers(300 * time.Millisecond) {
		t.Error("an answer that should be a minute late came at once")
	}
	p.heal(t.Context())
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if line, err := c.lines.ReadString('\n'); line != "hello\n" {
		t.Errorf("got %q (%v) after the delay, want hello", line, err)
	}
}
