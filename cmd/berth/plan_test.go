package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berthproject/berth/sim/plan"
)

// runPlan runs berth plan on a scenario, given as the text of its spec.
func runPlan(t *testing.T, spec string, args ...string) (stdout string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.yaml")
	text := `{"apiVersion": "berth.dev/v1alpha1", "kind": "Scenario", "spec": {` + spec + `}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := planCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{path}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

const (
	// A large node has the cores of two small ones, for less than twice the price.
	planGroups = `"nodeGroups": [
		{"name": "small", "max": 10, "pricePerHour": 1, "template": {"allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"}}},
		{"name": "large", "max": 10, "pricePerHour": 1.8, "initial": 1, "template": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}}}]`
	// Eight cores now, eight later, and a pod that is too large.
	planWorkload = `"workload": [
		{"name": "pods", "count": 8, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}},
		{"name": "job", "kind": "Job", "count": 8, "arrive": {"after": "3h"}, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}},
		{"name": "huge", "count": 1, "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}}]`
)

// TestPlanExplainsWhatEachClassWouldNeed of each group, in words and as JSON.
func TestPlanExplainsWhatEachClassWouldNeed(t *testing.T) {
	out, err := runPlan(t, planGroups+","+planWorkload, "--expanders", "least-nodes", "--explain")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(out, "\n\n")
	want := `1 pod like default/huge-0
  group  nodes  pods that fit  unused
  large  0      0              Insufficient cpu
  small  0      0              Insufficient cpu

8 pods like default/job-pending-0
  group  nodes  pods that fit  unused
  large  1      8              cpu 0%, memory 100%, pods 93%
  small  2      8              cpu 0%, memory 100%, pods 96%
`
	if tables != want {
		t.Errorf("got\n%s\nwant\n%s", tables, want)
	}
	out, err = runPlan(t, planGroups+","+planWorkload, "--expanders", "least-nodes,random", "--explain", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Purchases []plan.Purchase
		Estimates []plan.Estimate
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Purchases) != 2 || len(got.Estimates) != 2 || got.Estimates[1].Groups[1].Nodes != 2 || got.Estimates[1].Groups[1].Waste["memory"] != 1 || got.Estimates[0].Groups[0].Why[0] != "Insufficient cpu" {
		t.Errorf("got %+v", got)
	}
}

// TestPlanWithoutExpandersHasAllThatNeedNothing plans with a scenario that has no
// priorities.
func TestPlanWithoutExpandersHasAllThatNeedNothing(t *testing.T) {
	out, err := runPlan(t, planGroups+","+planWorkload)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range offlineExpanders() {
		if has := regexp.MustCompile(`(?m)^ *` + name + ` `).MatchString(out); has != (name != "priority") {
			t.Errorf("that %s has a line is %v, in\n%s", name, has, out)
		}
	}
}

func TestPlanRefusesWhatItCannotUse(t *testing.T) {
	for _, x := range []struct {
		spec string
		args []string
		want string
	}{
		{planGroups + "," + planWorkload, []string{"--expanders", "cheapest"}, `--expanders has "cheapest"; it must be one or more of random, most-pods`},
		{planGroups + "," + planWorkload, []string{"--expanders", "grpc"}, `--expanders has "grpc"; it must be one or more of`},
		{planGroups + "," + planWorkload, []string{"--expanders", "priority"}, "test with the expander priority: it needs spec.policy.expanderPriorities"},
		{planGroups + "," + planWorkload, []string{"-o", "yaml"}, `--output is "yaml"; it must be text or json`},
		{planWorkload, nil, "test: there are no node groups to scale up; give a scenario with spec.nodeGroups"},
		{planGroups, nil, "no pod is pending: the files have none, or all fit on existing nodes"},
		{planGroups, []string{"none.yaml"}, "reading none.yaml: no such file or directory"},
		{planGroups, []string{"."}, "reading .: it is a directory without openb_pod_list_default.csv"},
	} {
		if _, err := runPlan(t, x.spec, x.args...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: got %v, want …%s…", x.args, err, x.want)
		}
	}
}
