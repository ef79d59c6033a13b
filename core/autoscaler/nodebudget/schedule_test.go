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
		{"0 0 29 feb *", "2024-02-29 00:00:00", "2028-02-29 00:00:00"},
		{"0 0 13 * fri", "2026-03-07 00:00:00", "2026-03-13 00:00:00"},   // both fields name days: either will do
		{"0 0 10 * fri", "2026-03-07 00:00:00", "2026-03-10 00:00:00"},   // so the 10th comes first
		{"0 0 */10 * fri", "2026-03-07 00:00:00", "2026-03-11 00:00:00"}, // a star with a step names days, too
		{"0 0 */1 * fri", "2026-03-07 00:00:00", "2026-03-13 00:00:00"},  // but not with a step of 1
		{"0 0 13 * *,mon", "2026-03-07 00:00:00", "2026-03-13 00:00:00"}, // nor with a star among its elements
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

// TestSchedulesHaveFivePlainFieldsOrAWord refuses what the library accepts and Berth doesn't: time zones,
// which it would read from files, intervals, and elements with more than one meaning among crons.
func TestSchedulesHaveFivePlainFieldsOrAWord(t *testing.T) {
	for _, text := range []string{
		"", "TZ=UTC", "TZ=", "CRON_TZ=Europe/Madrid", "TZ=UTC 0 9 * * *", "CRON_TZ=UTC 0 9 * * *", "TZ=UTC 9 * * *", "TZ=UTC @daily", "@every 1h", "@every", "@reboot", "@Daily", "@",
		"0 0 9 * * *", "? * * * *", "0 9 ? * 1", "*-5 * * * *", "1,,2 * * * *", ", * * * *", "1, * * * *", "1-2-3 * * * *", "1/2/3 * * * *", "*/ * * * *", "*/-1 * * * *", "*/99999999999999999999 * * * *",
		"-5 * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 7", "* * * mon *", "* * * * jan", "* * * * monday", "* * * * fri-mon", "mon * * * *", "0 9 L * *", "0 9 * * 1#2",
		"0 0 30 2 *", "0 0 31 4,6,9,11 *",
	} {
		if s, err := nodebudget.ParseSchedule(text); err == nil {
			t.Errorf("%q is accepted; its next time after 2026-03-02 is %s", text, s.Next(at("2026-03-02 00:00:00")))
		}
	}
	for _, text := range []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "0 9 * JAN-Mar MON-fri/2", "05 9 * * *", "0\t9  * * *", "*/99 * * * *", "*,5 * * * *"} {
		if _, err := nodebudget.ParseSchedule(text); err != nil {
			t.Errorf("%q is refused: %v", text, err)
		}
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
			var items []string
			for range rapid.IntRange(1, 3).Draw(t, "items") {
				text, set := drawItem(t, b[0], b[1])
				items, sets[i] = append(items, text), append(sets[i], set...)
			}
			parts = append(parts, strings.Join(items, ","))
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

// drawItem draws a number, a range, or a star with a step of at least 2, with the numbers that it
// stands for.
func drawItem(t *rapid.T, least, most int) (text string, set []int) {
	from, step := rapid.IntRange(least, most).Draw(t, "from"), rapid.IntRange(2, 20).Draw(t, "step")
	to := rapid.IntRange(from, most).Draw(t, "to")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		text, to, step = fmt.Sprint(from), from, 1
	case 1:
		text, step = fmt.Sprintf("%d-%d", from, to), 1
	case 2:
		text = fmt.Sprintf("%d-%d/%d", from, to, step)
	case 3:
		text, to = fmt.Sprintf("%d/%d", from, step), most
	default:
		text, from, to = fmt.Sprintf("*/%d", step), least, most
	}
	for n := from; n <= to; n += step {
		set = append(set, n)
	}
	return text, set
}
