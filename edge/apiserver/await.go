package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/berthproject/berth/core/compat"
)

// This file waits for the API server. A static pod often starts before it, and kube-scheduler stays
// until it answers, whatever keeps it: an address where nobody listens, a certificate that isn't
// trusted, credentials that aren't valid yet. Somebody who gave a wrong address is told at once, and
// again and again.

const (
	// answerWithin is how long the API server may take to answer.
	answerWithin = 10 * time.Second
	// firstPause and longestPause bound the time between two attempts, which doubles.
	firstPause, longestPause = 250 * time.Millisecond, 5 * time.Second
	// firstSilence and longestSilence bound the time between two warnings, which doubles, too.
	firstSilence, longestSilence = 10 * time.Second, 5 * time.Minute
	// rolesWithin is how long an API server that has just started may take until it is ready.
	rolesWithin = time.Minute
)

// errNotAsked is what Answered returns before the first attempt has ended.
var errNotAsked = errors.New("the API server has not answered yet")

// Answered returns nil when the API server has answered, otherwise why it hasn't. It may be called by
// several goroutines.
func (s *Connection) Answered() error {
	if err := s.unanswered.Load(); err != nil {
		return *err
	}
	return nil
}

// Await returns when the API server has answered, or with the context's error. The first attempt that
// fails is logged at once, with the address and what to do, others at growing intervals.
func (s *Connection) Await(ctx context.Context, log *slog.Logger) error {
	pause, silence, warned := firstPause, firstSilence, time.Time{}
	began, forbidden := time.Now(), time.Time{}
	for {
		err := s.ask(ctx, log)
		if apierrors.IsForbidden(err) {
			if forbidden.IsZero() {
				forbidden = time.Now()
			}
			if s.ready(ctx) || time.Since(forbidden) >= rolesWithin {
				s.followNewest(log)
				return nil
			}
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.unanswered.Store(&err)
		if now := time.Now(); warned.IsZero() || now.Sub(warned) >= silence {
			if !warned.IsZero() {
				silence = min(2*silence, longestSilence)
			}
			warned = now
			log.Warn("waiting for the API server", "waited", now.Sub(began).Round(time.Second), "err", err)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
	if warned.IsZero() {
		return nil
	}
	log.Info("the API server answers", "waited", time.Since(began).Round(time.Second))
	return s.awaitRoles(ctx)
}

// ask asks the API server for its version, and records the answer.
func (s *Connection) ask(ctx context.Context, log *slog.Logger) error {
	v, err := s.version(ctx)
	if err != nil {
		return err
	}
	if note := judgeVersion(v); note != "" {
		log.Warn(note)
	}
	s.Version = followed(v)
	s.unanswered.Store(nil)
	return nil
}

// followNewest goes on without the API server's version, which it doesn't tell. Most clusters tell it
// to everybody.
func (s *Connection) followNewest(log *slog.Logger) {
	log.Warn("not authorized to get /version (403), so Berth follows --emulated-version, or otherwise the newest scheduling rules that it knows: bind the ClusterRole system:public-info-viewer, or set --emulated-version", "newest", compat.Newest.String())
	s.Version = compat.Newest
	s.unanswered.Store(nil)
}

// version returns the API server's version, or an error that says what to do.
func (s *Connection) version(ctx context.Context) (*apiversion.Info, error) {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	v, err := discovery.ToServerVersionInterfaceWithContext(s.Client.Discovery()).ServerVersionWithContext(within)
	switch {
	case err == nil:
		return v, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the API server at %s doesn't tell its version: %w; it may have just started, or check that its ClusterRole system:public-info-viewer is bound", s.Rest.Host, err)
	case within.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("the API server at %s did not answer within 10 seconds; check that it is running and that the kubeconfig points to it", s.Rest.Host)
	}
	return nil, fmt.Errorf("the API server at %s is not reachable: %w; check that it is running and that the kubeconfig points to it", s.Rest.Host, err)
}

// awaitRoles waits until an API server that has just begun to answer is ready, but not for long: before
// that, it refuses what the roles that it creates at its start allow.
func (s *Connection) awaitRoles(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, rolesWithin)
	defer cancel()
	for !s.ready(within) && sleep(within, firstPause) == nil {
	}
	return ctx.Err()
}

// ready reports whether the API server says that it is ready, or has no such page. Until it has its
// roles it refuses to say so (403).
func (s *Connection) ready(ctx context.Context) bool {
	err := s.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	return err == nil || apierrors.IsNotFound(err)
}

// sleep returns nil after a while, or the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
