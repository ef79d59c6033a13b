package nodebudget_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestNextTimes has for schedules the first time after one. 2026-03-02 is a Monday.
func TestNextTimes(t *testing.T) {
	for _, c := range []struct{ schedule, after, want string }{
		{"* * * * *", "2026-03-02 12:00:00", "2026-03-02 12:01:00"},
		{"* * * * *", "2026-03-02 12:00:59", "2026-03-02 12:01:00"},
		{"30 * * * *", "2026-03-02 12:30:00", "2026-03-02 13:30:00"},
		{"*/20 8-9 * * *", "2026-03-02 09:40:00", "2026-03-03 08:00:00"},
		{"5/20 * * * *", "2026-03-02 09:06:00", "2026-03-02 09:25:00"},
		{"0 9 * * 1-5", "2026-03-06 09:00:00", "2026-03-09 09:00:00"},
		{"0 9 * * Sat,sun", "2026-03-02 12:00:00", "2026-03-07 09:00:00"},
		{"0 0 1 * *", "2026-12-01 00:00:00", "2027-01-01 00:00:00"},
		{"0 0 31 * *", "2026-03-31 00:00:00", "2026-05-31 00:00:00"},
		{"0 0 29 2 *", "2026-03-02 00:00:00", "2028-02-29 00:00:00"},
		{"0 0 29 feb *", "2096-03-01 00:00:00", "2104-02-29 00:00:00"},
		{"0 0 13 * fri", "2026-03-07 00:00:00", "2026-03-13 00:00:00"},   // both fields name days: either will do
		{"0 0 10 * fri", "2026-03-07 00:00:00", "2026-03-10 00:00:00"},   // so the 10th comes first
		{"0 0 */10 * fri", "2026-03-07 00:00:00", "2026-05-01 00:00:00"}, // a star: a Friday that is the 1st, 11th, 21st or 31st
		{"@hourly", "2026-03-02 12:00:00", "2026-03-02 13:00:00"},
		{"@daily", "2026-03-02 12:00:00", "2026-03-03 00:00:00"},
		{"@weekly", "2026-03-02 12:00:00", "2026-03-08 00:00:00"},
		{"@monthly", "2026-03-02 12:00:00", "2026-04-01 00:00:00"},
		{"@yearly", "2026-03-02 12:00:00", "2027-01-01 00:00:00"},
	} {
		s := testkit.Must(nodebudget.ParseSchedule(c.schedule))
		if got := s.Next(at(c.after)); !got.Equal(at(c.want)) {
			t.Errorf("%q after %s: %s, want %s", c.schedule, c.after, got, c.want)
		}
	}
	madrid := time.FixedZone("", 3600)
	if got := testkit.Must(nodebudget.ParseSchedule("0 9 * * *")).Next(at("2026-03-02 12:00:00").In(madrid)); !got.Equal(at("2026-03-03 09:00:00")) {
		t.Errorf("a schedule's times aren't UTC where the caller's are others: %s", got)
	}
}

// TestPropertyNextIsTheFirstMinuteThatTheFieldsAllow looks at one minute after the other.
func TestPropertyNextIsTheFirstMinuteThatTheFieldsAllow(t *testing.T) {
	bounds := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		var sets [5][]int
		for i, b := range bounds {
			if rapid.Bool().Draw(t, "star") {
				parts = append(parts, "*")
				continue
			}
			sets[i] = rapid.SliceOfNDistinct(rapid.IntRange(b[0], b[1]), 1, 4, rapid.ID[int]).Draw(t, "numbers")
			parts = append(parts, strings.Trim(strings.ReplaceAll(fmt.Sprint(sets[i]), " ", ","), "[]"))
		}
		allows := func(field, n int) bool { return sets[field] == nil || slices.Contains(sets[field], n) }
		matches := func(m time.Time) bool {
			day, weekday := allows(2, m.Day()), allows(4, int(m.Weekday()))
			days := day && weekday
			if sets[2] != nil && sets[4] != nil {
				days = day || weekday
			}
			return days && allows(0, m.Minute()) && allows(1, m.Hour()) && allows(3, int(m.Month()))
		}
		s, err := nodebudget.ParseSchedule(strings.Join(parts, " "))
		if err != nil {
			return // such as 30 February
		}
		after := at("2027-12-25 00:00:00").Add(time.Duration(rapid.IntRange(0, 86400*70).Draw(t, "after")) * time.Second)
		got := s.Next(after)
		for m := after.Truncate(time.Minute).Add(time.Minute); m.Sub(after) < 30*24*time.Hour; m = m.Add(time.Minute) {
			if matches(m) {
				if !got.Equal(m) {
					t.Fatalf("%q after %s: %s, want %s", s, after, got, m)
				}
				return
			}
			if got.Equal(m) {
				t.Fatalf("%q after %s: %s, which the fields don't allow", s, after, got)
			}
		}
		if got.Sub(after) < 30*24*time.Hour {
			t.Fatalf("%q after %s: %s, and no minute of 30 days is allowed", s, after, got)
		}
	})
}
