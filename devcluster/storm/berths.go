package storm

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file runs Berth processes as a kubelet runs a container: one that ends is started
// again after a moment, with a log of its own.

// restartAfter is how long a Berth that has ended stays away.
const restartAfter = time.Second

// berth is one replica of Berth, in one process after the other.
type berth struct {
	name    string
	program string
	args    []string
	dir     string // of its logs
	proxy   *proxy

	mu      sync.Mutex
	process *controlplane.Process // guarded by mu; nil between two processes
	log     string                // of the newest process; guarded by mu
	starts  int                   // guarded by mu
}

// run starts the process again and again until the context ends, and stops it then. It returns an error
// only when a process can't be started: how one ends is Berth's business.
func (b *berth) run(ctx context.Context) error {
	for ctx.Err() == nil {
		p, err := b.start()
		if err != nil {
			return err
		}
		ended := make(chan struct{})
		go func() {
			_ = p.Wait() // why it ended is in its log
			close(ended)
		}()
		select {
		case <-ended:
		case <-ctx.Done():
			_ = p.Signal(syscall.SIGCONT) // a stopped process would not hear that it has to end
			p.Stop(10 * time.Second)
		}
		b.mu.Lock()
		b.process = nil
		b.mu.Unlock()
		pause(ctx, restartAfter)
	}
	return nil
}

// start starts a process with a log of its own: the logs of earlier ones stay.
func (b *berth) start() (*controlplane.Process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starts++
	b.log = filepath.Join(b.dir, fmt.Sprintf("%s.%d.log", b.name, b.starts))
	p, err := controlplane.StartProcess(b.name, b.log, b.program, b.args...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", b.program, err)
	}
	b.process = p
	return p, nil
}

// now returns the process that runs, nil between two, and how often one was started.
func (b *berth) now() (*controlplane.Process, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process, b.starts
}

// rss returns the process's memory in MiB, 0 without a process.
func (b *berth) rss() int64 {
	p, _ := b.now()
	if p == nil {
		return 0
	}
	return p.Usage().RSS >> 20
}

// leadsSince returns what the process's log has as the time at which it began to lead, in
// klog's form, which sorts; "" when it doesn't lead. A Berth that no longer leads has ended.
func (b *berth) leadsSince() (since string) {
	b.mu.Lock()
	log, running := b.log, b.process != nil
	b.mu.Unlock()
	if !running {
		return ""
	}
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); strings.Contains(line, `"leading" lease=`) && len(line) > 21 {
			since = line[1:21]
		}
	}
	return since
}

// leader returns the Berth that began to lead last, nil for none. It is by the logs: to ask the Lease
// would need an API server that answers.
func leader(berths []*berth) (leader *berth) {
	latest := ""
	for _, b := range berths {
		if since := b.leadsSince(); since > latest {
			leader, latest = b, since
		}
	}
	return leader
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
