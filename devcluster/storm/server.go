package storm

import (
	"context"
	"time"
)

// This file is what happens to the API server and to etcd.

// servesWithin is how long a control plane may take until it serves again.
const servesWithin = 2 * time.Minute

// killAPIServer kills the API server and starts it again a while later.
func killAPIServer(ctx context.Context, r *run, s Step) (time.Time, error) {
	if err := r.bed.cluster.Kill("kube-apiserver"); err != nil {
		return time.Time{}, err
	}
	pause(ctx, s.Lasts)
	return r.restart(ctx, "kube-apiserver")
}

// killEtcd kills etcd and starts it again a while later, with its data.
func killEtcd(ctx context.Context, r *run, s Step) (time.Time, error) {
	if err := r.bed.cluster.Kill("etcd"); err != nil {
		return time.Time{}, err
	}
	pause(ctx, s.Lasts)
	return r.restart(ctx, "etcd")
}

// restart starts a component again and returns when the API server serves.
func (r *run) restart(ctx context.Context, component string) (time.Time, error) {
	if err := r.bed.cluster.Restart(component); err != nil {
		return time.Time{}, err
	}
	err := r.bed.cluster.WaitServing(ctx, servesWithin)
	return time.Now(), err
}

// compact makes etcd forget what happened while no Berth was connected.
func compact(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.unseen(ctx, func() error {
		pause(ctx, s.Lasts)
		return nil
	})
}

// unseen lets something happen while no Berth is connected, and makes their watches end with
// 410: etcd is compacted, and the API server, whose cache would have known more, starts anew.
func (r *run) unseen(ctx context.Context, happen func() error) (from time.Time, err error) {
	for _, b := range r.bed.berths {
		b.proxy.down()
	}
	defer func() {
		for _, b := range r.bed.berths {
			if up := b.proxy.up(); up != nil {
				err = up
			}
		}
		from = time.Now()
	}()
	if err := happen(); err != nil {
		return time.Time{}, err
	}
	if err := r.bed.cluster.Compact(ctx); err != nil {
		return time.Time{}, err
	}
	if err := r.bed.cluster.Kill("kube-apiserver"); err != nil {
		return time.Time{}, err
	}
	return r.restart(ctx, "kube-apiserver")
}
