package nodebudget

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// This file reads schedules of cron: five fields for minute, hour, day of the month, month and
// day of the week, or a word such as @daily. Times are UTC, as those of Karpenter's budgets
// are. It is the syntax that Kubernetes' CronJobs have, without seconds and time zones: a
// library for it would bring timers and goroutines into the core.

// Schedule is a set of minutes.
type Schedule struct {
	text   string
	fields [5]uint64 // bit sets of what each field allows, in the order in which they are written
	// anyDay and anyWeekday say that the field began with a star. Where neither does, a day of
	// either kind is enough; else a day has to be of both.
	anyDay, anyWeekday bool
}

// The fields of a schedule.
const (
	minute = iota
	hour
	day
	month
	weekday
)

// fields are the words and bounds of each field.
var fields = [5]struct {
	name       string
	least, max int
	words      []string // for numbers from least on
}{
	minute:  {"minute", 0, 59, nil},
	hour:    {"hour", 0, 23, nil},
	day:     {"day of the month", 1, 31, nil},
	month:   {"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	weekday: {"day of the week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var words = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// ParseSchedule reads a schedule. Its error follows "schedule is TEXT; ".
func ParseSchedule(text string) (*Schedule, error) {
	s := &Schedule{text: text}
	spec, isWord := words[text]
	if !isWord {
		spec = text
	}
	parts := strings.Fields(spec)
	if len(parts) != len(s.fields) {
		return nil, errors.New(`it must have five fields (minute, hour, day of the month, month, day of the week), such as "0 9 * * 1-5", or be @hourly, @daily, @weekly, @monthly or @yearly`)
	}
	for i, part := range parts {
		for item := range strings.SplitSeq(part, ",") {
			bits, err := parseItem(i, strings.ToLower(item))
			if err != nil {
				return nil, err
			}
			s.fields[i] |= bits
		}
	}
	s.anyDay, s.anyWeekday = strings.HasPrefix(parts[day], "*"), strings.HasPrefix(parts[weekday], "*")
	if s.Next(time.Unix(0, 0)).IsZero() {
		return nil, errors.New("it matches no date")
	}
	return s, nil
}

// parseItem reads one of the items of a field: a star, a number or a range, each with a step
// or without.
func parseItem(field int, item string) (bits uint64, err error) {
	of := &fields[field]
	span, stepText, stepped := strings.Cut(item, "/")
	from, to, isRange := strings.Cut(span, "-")
	least, max, step := of.least, of.max, 1
	if span != "*" {
		least, err = parseNumber(field, from)
		max = least
		if err == nil && isRange {
			max, err = parseNumber(field, to)
		} else if stepped {
			max = of.max
		}
	}
	if err == nil && stepped {
		if step, err = strconv.Atoi(stepText); step < 1 {
			err = strconv.ErrRange
		}
	}
	if err != nil || least > max {
		return 0, fmt.Errorf("%q is not a valid %s; it must be a number from %d to %d, a range such as %d-%d, or * for all, each optionally with a step such as /2; separate several with commas",
			item, of.name, of.least, of.max, of.least, of.max)
	}
	for n := least; n <= max; n += step {
		bits |= 1 << n
	}
	return bits, nil
}

func parseNumber(field int, text string) (int, error) {
	of := &fields[field]
	for i, w := range of.words {
		if text == w {
			return of.least + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < of.least || n > of.max {
		return 0, strconv.ErrRange
	}
	return n, nil
}

func (s *Schedule) has(field, n int) bool { return s.fields[field]&(1<<n) != 0 }

// hasDay reports whether some minute of a day may be in the schedule.
func (s *Schedule) hasDay(t time.Time) bool {
	inMonth, inWeek := s.has(day, t.Day()), s.has(weekday, int(t.Weekday()))
	if s.anyDay || s.anyWeekday {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

// years is how far Next looks ahead: a 29 February comes after eight years at most.
const years = 9

// Next returns the first time of the schedule after t, zero when none comes. It takes some
// hundred steps for a schedule with times in each year.
func (s *Schedule) Next(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Minute).Add(time.Minute)
	for end := t.AddDate(years, 0, 0); t.Before(end); {
		switch y, m, d := t.Date(); {
		case !s.has(month, int(m)):
			t = time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
		case !s.hasDay(t):
			t = time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
		case !s.has(hour, t.Hour()):
			t = t.Truncate(time.Hour).Add(time.Hour)
		case !s.has(minute, t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// String returns the schedule as it was written.
func (s *Schedule) String() string { return s.text }
