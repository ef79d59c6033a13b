package storm

import (
	"context"
	"time"
)

// This file is what happens between Berth and the node groups. Nothing of it keeps a pod from
// nodes that are there.

// cutNodeGroupsOff refuses all connections to the node groups.
func cutNodeGroupsOff(ctx context.Context, r *run, s Step) (time.Time, error) {
	r.bed.toNodes.down()
	pause(ctx, s.Lasts)
	return time.Now(), r.bed.toNodes.up()
}

// loseAnswers loses the answers to what is ordered and carried out: Berth can't know whether it was.
func loseAnswers(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.hush(ctx, s, "timeout", map[string]int{"timeout": 0})
}

// delayAnswers makes some answers come before Berth's deadline and others after it.
func delayAnswers(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.hush(ctx, s, "latency", map[string]int{"latency": 6000, "jitter": 3000})
}

// hush puts a toxic on the node groups' answers while a step lasts.
func (r *run) hush(ctx context.Context, s Step, kind string, attributes map[string]int) (time.Time, error) {
	defer r.bed.toNodes.heal(ctx)
	if err := r.bed.toNodes.afflict(answers, kind, 1, attributes); err != nil {
		return time.Time{}, err
	}
	pause(ctx, s.Lasts)
	return time.Now(), nil
}
