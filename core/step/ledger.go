package step

// This file holds the ledger: all decisions in order, as lines of JSON for people, and as
// a digest by which two runs are compared.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"
)

// Ledger turns decisions into lines of JSON and keeps their digest. The zero
// value only digests.
type Ledger struct {
	To io.Writer // may be nil
	// hash is of all lines so far, without the fields that the digest leaves out; nil before the
	// first decision. err is the first error; later lines are still digested and written.
	hash  hash.Hash
	count int
	err   error
}

// Add appends decisions in order.
func (l *Ledger) Add(decisions []Decision) {
	if l.hash == nil {
		l.hash = sha256.New()
	}
	for i := range decisions {
		d := decisions[i]
		d.Time = d.Time.UTC()
		whole := d
		d.Position = 0 // a replay has other positions: a recording leaves out what rules don't read
		d.Choice, d.Weighed, d.Disruptions = nil, nil, 0
		line, err := json.Marshal(&d)
		if err != nil {
			l.fail(err)
			return
		}
		l.count++
		l.hash.Write(append(line, '\n'))
		if l.To == nil {
			continue
		}
		if line, err = json.Marshal(&whole); err == nil {
			_, err = l.To.Write(append(line, '\n'))
		}
		if err != nil {
			l.fail(err)
		}
	}
}

// Step appends the decisions of a Step; it makes a Ledger a drive.Hook.
func (l *Ledger) Step(_ time.Time, _ time.Duration, _ []Input, r *Ready) { l.Add(r.Decisions) }

func (l *Ledger) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("writing the decision ledger: %w", err)
	}
}

// Digest identifies all decisions so far and their order: equal inputs, times
// and seeds give equal digests on every machine.
func (l *Ledger) Digest() string {
	if l.hash == nil {
		l.hash = sha256.New()
	}
	return hex.EncodeToString(l.hash.Sum(nil))
}

// Count returns how many decisions there were.
func (l *Ledger) Count() int { return l.count }

// Err returns the first error of writing.
func (l *Ledger) Err() error { return l.err }
