// Watch writes the dashboard and the alert rules of deploy/chart/files from the list of metrics in the
// code. hack/promcheck evaluates their expressions in a recorded scrape.
//
//	go run ./hack/watch
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/berthproject/berth/edge/observe"
)

func main() {
	if err := write("deploy/chart/files"); err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		os.Exit(1)
	}
}

// write writes both files into a folder.
func write(folder string) error {
	files, err := generate(observe.NewMetrics().List())
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files by name. An error names an expression over a metric that isn't in
// the list.
func generate(list []observe.Metric) (map[string][]byte, error) {
	dashboard, err := dashboardOf(list)
	if err != nil {
		return nil, err
	}
	rules, err := rulesOf(list)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"grafana-dashboard.json": dashboard, "alerts.yaml": rules}, nil
}
