package storm

import (
	"context"
	"syscall"
	"time"
)

// This file is what happens to the Berth that leads.

// longerThanLease is how long a leader is away: the Lease's 15 seconds and five more.
const longerThanLease = 20 * time.Second

// current returns the Berth that leads and its process.
func (r *run) current(ctx context.Context) (*berth, error) {
	if err := r.bed.waitLeader(ctx, time.Minute); err != nil {
		return nil, err
	}
	return leader(r.bed.berths), nil
}

// killLeader kills the leader, which has no chance to give the Lease up.
func killLeader(ctx context.Context, r *run, _ Step) (time.Time, error) {
	b, err := r.current(ctx)
	if err != nil {
		return time.Time{}, err
	}
	from := time.Now()
	if p, _ := b.now(); p != nil {
		p.Kill()
	}
	return from, nil
}

// stopLeader stops the leader's process and lets it go on when another leads.
func stopLeader(ctx context.Context, r *run, _ Step) (time.Time, error) {
	b, err := r.current(ctx)
	if err != nil {
		return time.Time{}, err
	}
	p, _ := b.now()
	if p == nil {
		return time.Now(), nil // it has just ended by itself
	}
	from := time.Now()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return time.Time{}, err
	}
	pause(ctx, longerThanLease)
	return from, p.Signal(syscall.SIGCONT)
}

// cutLeaderOff refuses the leader's connections until another leads.
func cutLeaderOff(ctx context.Context, r *run, _ Step) (time.Time, error) {
	b, err := r.current(ctx)
	if err != nil {
		return time.Time{}, err
	}
	from := time.Now()
	b.proxy.down()
	pause(ctx, longerThanLease)
	return from, b.proxy.up()
}

// killBoth kills the API server and the leader at once: whatever was being written, nobody knows of.
func killBoth(ctx context.Context, r *run, s Step) (time.Time, error) {
	b, err := r.current(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if err := r.bed.cluster.Kill("kube-apiserver"); err != nil {
		return time.Time{}, err
	}
	if p, _ := b.now(); p != nil {
		p.Kill()
	}
	pause(ctx, s.Lasts)
	return r.restart(ctx, "kube-apiserver")
}
