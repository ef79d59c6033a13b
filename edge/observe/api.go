package observe

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/version"
)

// This file gives the API (edge/api) what it answers from.

// About is what a Berth is, for whoever asks. It is set before Run.
type About struct {
	Mode v1alpha1.Mode
	// Provider is that of --cloud-provider, "" for none, and Identity this process' among all.
	Provider, Identity string
	// Leader returns the identity of the one that leads, "" when it isn't known. It may be nil, and is called by
	// several goroutines.
	Leader func() string
}

// ModeOf returns the mode of a Berth by its flags --mode and --shadow.
func ModeOf(mode string, shadow bool) v1alpha1.Mode {
	switch {
	case shadow:
		return v1alpha1.ModeShadow
	case mode == string(v1alpha1.ModeAutoscaler):
		return v1alpha1.ModeAutoscaler
	}
	return v1alpha1.ModeLive
}

// api returns the API, for viewers whose rights are known.
func (s *Server) api(rights *api.Rights) *api.API {
	return api.New(api.Options{
		Ask: s.ask, Ledger: s.History, Series: s.series, Meta: s.meta, Rights: rights, WhatIf: s.whatIf, Ended: s.Stopping, Prices: s.priceFailure,
	})
}

// priceFailure returns why the price file isn't used as it is now, "" when it is or there is none.
func (s *Server) priceFailure() string {
	if p := s.prices.Load(); p != nil {
		return p.Error
	}
	return ""
}

// idle is the least time that the core has for itself after a sample, in multiples of what the sample took.
const idle = 49

// sample keeps the gauges of the leader's core, when it is time. It is for the goroutine that owns the core.
func (s *Server) sample(c *core.Core) {
	began := time.Now()
	if began.Before(s.sampled) {
		return
	}
	s.series.Add(began, c)
	ended := time.Now()
	s.sampled = ended.Add(idle * ended.Sub(began))
}

// meta returns what is known of this Berth without asking its core.
func (s *Server) meta() v1alpha1.Meta {
	v := version.Get()
	m := v1alpha1.Meta{
		Version: v.Version, Revision: v.Revision, Go: v.Go, Mode: cmp.Or(s.About.Mode, v1alpha1.ModeLive), Leading: s.leader.Load(),
		Identity: s.About.Identity, Epoch: strconv.FormatInt(s.started.UnixMilli(), 36), Since: s.started.UTC(), Provider: s.About.Provider,
	}
	if m.Leading {
		m.Leader = m.Identity
	} else if s.About.Leader != nil {
		m.Leader = s.About.Leader()
	}
	if p := s.prices.Load(); p != nil {
		m.Currency = p.Currency
	}
	if f, ok := s.Flags.(Flags); ok {
		m.Flags = f.changed()
	}
	return m
}

// changed returns the values of the flags that aren't at their defaults, by name, without secrets.
func (f Flags) changed() map[string]string {
	out := map[string]string{}
	for _, set := range f.FlagSets {
		set.VisitAll(func(flag *pflag.Flag) { // Visit knows only what was parsed by the set itself
			if !flag.Changed || flag.Hidden || flag.Value.String() == flag.DefValue {
				return
			}
			if out[flag.Name] = strings.Join(config.FlagValues(flag), ","); len(flag.Annotations["classified"]) > 0 {
				out[flag.Name] = "CLASSIFIED"
			}
		})
	}
	return out
}
