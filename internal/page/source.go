package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/pflag"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// This file opens what answers: a running Berth, or a file. Whoever asks can't tell them apart.

// Source are the flags that say what is asked.
type Source struct {
	reach.Flags
	File string // path; "" for a running Berth
}

// Register adds the flags, those of a running Berth to a set of their own.
func (s *Source) Register(fs, connection *pflag.FlagSet) {
	fs.StringVar(&s.File, "file", "", "path to a scenario, a dump, a recording or a shadow report to query in place of a live cluster; - for standard input")
	s.Flags.Register(connection)
}

// Validate refuses flags that can't be used, and those of a running Berth beside --file.
func (s *Source) Validate() error {
	if s.File != "" {
		return s.RefuseBeside("--file")
	}
	return s.Flags.Validate()
}

// Open returns what answers, and what ends that; log is told how far the simulation of a file is.
func (s *Source) Open(ctx context.Context, log io.Writer) (from term.Source, end func(), err error) {
	if err := s.Validate(); err != nil {
		return nil, nil, term.Usage(err)
	}
	if s.File != "" {
		h, err := Offline(ctx, s.File, nil, log)
		if err != nil {
			return nil, nil, term.FileError(ctx, err)
		}
		return offline{h}, func() {}, nil
	}
	c, err := s.Flags.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}

// offline asks a handler as reach.Connection asks a server.
type offline struct{ http.Handler }

// Get implements term.Source.
func (o offline) Get(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	w := &kept{header: http.Header{}, code: http.StatusOK}
	o.ServeHTTP(w, r)
	if w.code == http.StatusOK {
		return w.body.Bytes(), nil
	}
	failed := v1alpha1.Error{}
	if err := json.Unmarshal(w.body.Bytes(), &failed); err != nil || failed.Error == "" {
		return nil, fmt.Errorf("the file can't answer %s: status %d", path, w.code)
	}
	return nil, errors.New(failed.Error)
}
