package storm

import (
	"context"
	"time"
)

// This file is what happens between Berth and the API server.

// hit returns the Berths that a step concerns. It waits for a leader where it needs one.
func (r *run) hit(ctx context.Context, s Step) ([]*berth, error) {
	if s.All {
		return r.bed.berths, nil
	}
	if err := r.bed.waitLeader(ctx, time.Minute); err != nil {
		return nil, err
	}
	return []*berth{leader(r.bed.berths)}, nil
}

// afflicted puts a toxic on the connections of those whom a step concerns, while it lasts.
func (r *run) afflicted(ctx context.Context, s Step, kind string, attributes map[string]int) (time.Time, error) {
	hit, err := r.hit(ctx, s)
	if err != nil {
		return time.Time{}, err
	}
	defer func() {
		for _, b := range hit {
			b.proxy.heal(ctx)
		}
	}()
	for _, b := range hit {
		if err := b.proxy.afflict(bothWays, kind, s.Share, attributes); err != nil {
			return time.Time{}, err
		}
	}
	pause(ctx, s.Lasts)
	return time.Now(), nil
}

// delay makes bytes late by less than a second: everything works, and slowly.
func delay(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.afflicted(ctx, s, "latency", map[string]int{"latency": 400, "jitter": 300})
}

// hang makes bytes late by more than any timeout. They arrive when the connection heals: what Berth has
// given up may be carried out then.
func hang(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.afflicted(ctx, s, "latency", map[string]int{"latency": 60_000})
}

// blackHole loses bytes without closing the connection, as a firewall that has forgotten it does.
func blackHole(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.afflicted(ctx, s, "timeout", map[string]int{"timeout": 0})
}

// cutConnections cuts all connections every second; for a share of the time none is accepted.
func cutConnections(ctx context.Context, r *run, s Step) (time.Time, error) {
	hit, err := r.hit(ctx, s)
	if err != nil {
		return time.Time{}, err
	}
	for end := time.Now().Add(s.Lasts); time.Now().Before(end) && ctx.Err() == nil; {
		for _, b := range hit {
			b.proxy.down()
		}
		pause(ctx, time.Duration((1-s.Share)*float64(time.Second)))
		for _, b := range hit {
			if err := b.proxy.up(); err != nil {
				return time.Time{}, err
			}
		}
		pause(ctx, time.Second)
	}
	return time.Now(), nil
}
