package main

import "testing"

// TestPluginHasEveryCommandThatAsksBerth: what asks a running Berth is a command of kubectl berth,
// too, by the same name and with the same flags.
func TestPluginHasEveryCommandThatAsksBerth(t *testing.T) {
	for _, path := range [][]string{{"status"}, {"top"}, {"explain"}, {"shadow", "report"}, {"ui"}, {"dump"}} {
		ours, _, err := root().Find(path)
		if err != nil {
			t.Fatal(err)
		}
		theirs, rest, err := plugin().Find(path)
		if err != nil || len(rest) > 0 {
			t.Errorf("kubectl berth has no command %v: %v", path, err)
			continue
		}
		if got, want := theirs.Flags().FlagUsages(), ours.Flags().FlagUsages(); got != want {
			t.Errorf("kubectl berth %v has the flags\n%s\nberth has\n%s", path, got, want)
		}
	}
}
