package nodebudget

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// This file reads schedules with the parser that CronJobs and Karpenter's budgets use, so that
// they mean the same here. Times are UTC, as those of Karpenter's budgets are. The parser and the
// schedules that it returns are pure; the rest of the library has timers and goroutines, and isn't
// used.

// Schedule is a set of minutes.
type Schedule struct {
	text  string
	times cron.Schedule
}

// fields are the words and bounds of each field, in the order in which they are written.
var fields = [5]struct {
	name       string
	option     cron.ParseOption
	least, max int
}{
	{"minute", cron.Minute, 0, 59},
	{"hour", cron.Hour, 0, 23},
	{"day of the month", cron.Dom, 1, 31},
	{"month", cron.Month, 1, 12},
	{"day of the week", cron.Dow, 0, 6},
}

// item is one element of a field. The library alone would also accept time zones, which it reads
// from files, "?", empty elements, and ranges that begin with a star.
var item = regexp.MustCompile(`^(\*|\w+(-\w+)?)(/\d+)?$`)

// errShape is the error of a text that is neither five fields nor a word.
var errShape = errors.New(`it must have five fields (minute, hour, day of the month, month, day of the week), such as "0 9 * * 1-5", or be @hourly, @daily, @weekly, @monthly or @yearly`)

// ParseSchedule reads a schedule. Its error follows "schedule is TEXT; ".
func ParseSchedule(text string) (*Schedule, error) {
	parts := strings.Fields(text)
	options := cron.Descriptor
	switch {
	case len(parts) == len(fields):
		if err := checkFields(parts); err != nil {
			return nil, err
		}
		options = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow
	case len(parts) != 1 || !strings.HasPrefix(parts[0], "@"):
		return nil, errShape
	}
	times, err := cron.NewParser(options).Parse(strings.Join(parts, " "))
	if err != nil {
		return nil, errShape
	}
	s := &Schedule{text, times}
	if s.Next(time.Unix(0, 0)).IsZero() {
		return nil, errors.New("it matches no date")
	}
	return s, nil
}

// checkFields returns an error that names the first invalid element and its field, which those of
// the library don't.
func checkFields(parts []string) error {
	for i, f := range fields {
		parser := cron.NewParser(f.option)
		for part := range strings.SplitSeq(parts[i], ",") {
			if item.MatchString(part) {
				if _, err := parser.Parse(part); err == nil {
					continue
				}
			}
			return fmt.Errorf("%q is not a valid %s; it must be a number from %d to %d, a range such as %d-%d, or * for all, each optionally with a step such as /2; separate several with commas",
				part, f.name, f.least, f.max, f.least, f.max)
		}
	}
	return nil
}

// Next returns the first time of the schedule after t, zero when none comes within five years.
func (s *Schedule) Next(t time.Time) time.Time { return s.times.Next(t.UTC()) }

// String returns the schedule as it was written.
func (s *Schedule) String() string { return s.text }
