package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/berthproject/berth/internal/term"
)

// usage is a command line that can't be used, and the words by which the user finds out what is wrong and what to do.
type usage struct{ line, says string }

// unusable has, for every command, a wrong flag, an argument too many, an unknown value and a file that isn't there, as
// far as it takes one.
var unusable = []usage{
	{"foo", `unknown command "foo" for "berth"`},
	{"simulat x", "did you mean simulate?"},
	{"--wrong", "unknown flag: --wrong; see berth --help"},
	{"help foo", `unknown command "foo" for "berth"; see berth --help`},
	{"help status foo", `unknown command "foo" for "berth status"`},
	{"completion foo", `unknown command "foo" for "berth completion"; see berth completion --help`},
	{"completion bash foo", `unknown command "foo" for "berth completion bash"; see berth completion bash --help`},
	{"version --wrong", "unknown flag: --wrong; see berth version --help"},
	{"version foo", `"foo" is one argument too many: the command takes none; see berth version --help`},

	{"run --wrong", "unknown flag: --wrong; see berth run --help"},
	{"run foo", `"foo" is one argument too many`},
	{"run --mode x", `--mode is "x"; it must be scheduler, autoscaler or unset`},
	{"run --cloud-provider aws", `--cloud-provider is "aws"; it must be externalgrpc, clusterapi or simulated`},
	{"run --expander x", "give one or more of"},
	{"run --nodes x", `must be MIN:MAX:NAME`},
	{"run --seed x", `--seed is "x"; it must be a whole number of at least 0; see berth run --help`},
	{"run --v x", `--v is "x"; it must be a whole number of at least 0; see berth run --help`},
	{"run --shadow=x", `--shadow is "x"; it must be true or false; see berth run --help`},
	{"run --scan-interval 10", `--scan-interval is "10"; it must be a duration such as 30s, 5m or 1h30m; see berth run --help`},
	{"run --secure-port 99999999", "--secure-port 99999999 must be between"},
	{"run --feature-gates X=true", "--feature-gates has X=true; kube-scheduler"},
	{"run --logging-format x", "--logging-format must be text or json"},
	{"run --scale-down-utilization-threshold 7", "--scale-down-utilization-threshold is 7; it must be a ratio, from 0 to 1"},
	{"run --config MISSING", "reading the scheduler configuration: open MISSING: no such file"},
	{"run --cloud-provider simulated --cloud-config MISSING", "reading node groups: open MISSING: no such file"},
	{"run --cloud-provider simulated --cloud-config GARBAGE", "reading node groups from GARBAGE: "},
	{"run --kubeconfig MISSING", "--kubeconfig: stat MISSING: no such file"},
	{"run --kubeconfig GARBAGE", "reading the kubeconfig: error loading config file"},
	{"run", "there is no kubeconfig"},
	{"run --tracing-config-file MISSING --kubeconfig KUBECONFIG", "--tracing-config-file: open MISSING: no such file"},
	{"run --tls-cert-file MISSING --tls-private-key-file MISSING", "--tls-cert-file: stat MISSING: no such file or directory; give the path of a PEM file"},
	{"run --record MISSING/x", `--record is "MISSING/x", but there is no directory MISSING; create it, or give another path`},

	{"simulate", "no file given; give a scenario, a dump or a manifest"},
	{"simulate --wrong", "unknown flag: --wrong; see berth simulate --help"},
	{"simulate MISSING", "reading MISSING: no such file"},
	{"simulate GARBAGE", "GARBAGE:1: "},
	{"simulate SCENARIO -o x", `--output is "x"; it must be text, json or html`},
	{"simulate SCENARIO --seed x", `--seed is "x"; it must be a whole number of at least 0`},
	{"simulate SCENARIO --compare", "--compare needs at least two scenarios or policies, but got 1"},
	{"simulate SCENARIO --explain x", `--explain is "x"; it must be a pod as namespace/name`},
	{"simulate SCENARIO --config x", "need --replay"},
	{"simulate SCENARIO --report MISSING/x.html", `--report is "MISSING/x.html", but there is no directory MISSING`},
	{"simulate SCENARIO --report html", `--report is "html", but takes the path of a file, such as report.html; -o html writes the page to standard output`},
	{"simulate SCENARIO --report FOLDER", `--report is "FOLDER", which is a directory; give the path of a file`},
	{"simulate SCENARIO --decisions MISSING/x", `--decisions is "MISSING/x", but there is no directory MISSING`},
	{"simulate --replay MISSING", "reading the recording: open MISSING: no such file"},
	{"simulate --replay SCENARIO", "SCENARIO:1: this is not a recording of Berth"},
	{"simulate --replay SCENARIO foo", "--replay takes a recording and nothing else; omit foo"},
	{"simulate --replay SCENARIO --autoscaler-flag x", "--autoscaler-flag: argument x is not a flag"},
	{"simulate --replay SCENARIO --emulated-version 1.20", "is not a version whose scheduling rules Berth implements"},

	{"plan", "requires at least 1 arg(s), only received 0; see berth plan --help"},
	{"plan --wrong", "unknown flag: --wrong; see berth plan --help"},
	{"plan MISSING", "reading MISSING: no such file"},
	{"plan SCENARIO -o x", `--output is "x"; it must be text or json`},
	{"plan SCENARIO --expanders x", `--expanders has "x"; it must be one or more of`},
	{"plan SCENARIO SCENARIO", "berth plan takes one scenario and at most one policy, but the files make 2 runs"},
	{"plan DUMP", "there are no node groups to scale up; give a scenario with spec.nodeGroups"},

	{"status --wrong", "unknown flag: --wrong; see berth status --help"},
	{"status foo", `"foo" is one argument too many`},
	{"status -o x", `--output is "x"; it must be text, wide, json`},
	{"status -o jsonpath", "--output is \"jsonpath\": template format specified but no template given"},
	{"status --brief -o json", "--brief is a text; omit --output"},
	{"status --file MISSING", "--file: open MISSING: no such file"},
	{"status --file GARBAGE", "GARBAGE:1: "},
	{"status --server x", `--server is "x"; give an address such as https://localhost:10259`},
	{"status --server https://x --pod a/b", "--pod and --server can't be given together: with --server that address is queried, and no pod; omit one or the other"},
	{"status --file DUMP --server https://x", "--server and --file can't be given together: with --file no running Berth is queried; omit one or the other"},
	{"status --kubeconfig MISSING", "--kubeconfig: stat MISSING: no such file"},

	{"top --wrong", "unknown flag: --wrong; see berth top --help"},
	{"top foo", `"foo" is one argument too many`},
	{"top --interval 1ms", "--interval is 1ms; it must be at least 500ms"},
	{"top --interval x", `--interval is "x"; it must be a duration such as 30s`},
	{"top --file MISSING", "--file: open MISSING: no such file"},
	{"top --once --file DUMP --context c --lease kube-system/berth", "--context, --lease and --file can't be given together"},
	{"top --file DUMP --request-timeout 5s", "--request-timeout and --file can't be given together"},
	{"top --server https://x --port 1", "--port and --server can't be given together"},
	{"top --pod x", `--pod is "x"; it must be the pod of Berth as NAMESPACE/NAME`},

	{"explain", "name a pod: berth explain pod NAMESPACE/NAME"},
	{"explain --wrong", "unknown flag: --wrong; see berth explain --help"},
	{"explain foo", "name a pod: berth explain pod NAMESPACE/NAME"},
	{"explain pod", "name one pod: berth explain pod NAMESPACE/NAME, or show all: berth explain pods"},
	{"explain pod a b", "name one pod: berth explain pod NAMESPACE/NAME"},
	{"explain pod a/b/c", "name one pod: berth explain pod NAMESPACE/NAME"},
	{"explain pod a/", "name one pod: berth explain pod NAMESPACE/NAME"},
	{"explain pod /b", "name one pod: berth explain pod NAMESPACE/NAME"},
	{"explain pod//b", "name one pod: berth explain pod NAMESPACE/NAME"},
	{"explain node a b", "name one node: berth explain node NAME"},
	{"explain pod a/b -o x", `--output is "x"; it must be text, wide, name`},
	{"explain pod a/b --file MISSING", "--file: open MISSING: no such file"},
	{"explain pod a/b --file DUMP --pod a/b", "--pod and --file can't be given together"},
	{"explain pod b --file DUMP --kubeconfig KUBECONFIG", "--kubeconfig and --file can't be given together"},
	{"explain pod a/b --server https://x --service-account a/b", "--service-account and --server can't be given together"},
	{"explain pod a/b --lease x", `--lease is "x"; it must be the Lease as NAMESPACE/NAME`},

	{"ui --wrong", "unknown flag: --wrong; see berth ui --help"},
	{"ui foo", `"foo" is one argument too many`},
	{"ui --local-port 99999999", "--local-port is 99999999; it must be from 1 to 65535, or 0 for any that is free"},
	{"ui --compare x", "--compare lays runs over that of --file; give --file, too"},
	{"ui --file MISSING", "--file: open MISSING: no such file"},
	{"ui --file SCENARIO --compare MISSING", "--compare: open MISSING: no such file"},
	{"ui --file SCENARIO --token-file GARBAGE", "--token-file and --file can't be given together"},
	{"ui --token-file MISSING", "--token-file needs --server"},

	{"shadow foo", `unknown command "foo" for "berth shadow"; see berth shadow --help`},
	{"shadow report --wrong", "unknown flag: --wrong; see berth shadow report --help"},
	{"shadow report foo", `"foo" is one argument too many`},
	{"shadow report -o x", `--output is "x"; it must be text, html, json`},
	{"shadow report --file MISSING", "--file: reading MISSING: no such file"},
	{"shadow report --file GARBAGE", "it must be one saved with berth shadow report -o json"},
	{"shadow report --file GARBAGE --insecure-skip-tls-verify", "--insecure-skip-tls-verify and --file can't be given together"},
	{"shadow report --port 65536", "--port is 65536; it must be from 1 to 65535"},

	{"dump --wrong", "unknown flag: --wrong; see berth dump --help"},
	{"dump foo", `"foo" is one argument too many`},
	{"dump --kubeconfig MISSING", "--kubeconfig: stat MISSING: no such file"},

	{"provider foo", `unknown command "foo" for "berth provider"; see berth provider --help`},
	{"provider simulated --wrong", "unknown flag: --wrong; see berth provider simulated --help"},
	{"provider simulated foo", `"foo" is one argument too many`},
	{"provider simulated", "--cloud-config is required; set it to the path of a file with node groups"},
	{"provider simulated --cloud-config MISSING", "reading node groups: open MISSING: no such file"},
	{"provider simulated --cloud-config x --listen 0.0.0.0:1", "0.0.0.0:1"},
	{"provider check", "accepts 1 arg(s), received 0; see berth provider check --help"},
	{"provider check --wrong", "unknown flag: --wrong; see berth provider check --help"},
	{"provider check foo", `address is "foo"; it must be host:port, or unix:// and the absolute path of a socket`},

	{"prices foo", `unknown command "foo" for "berth prices"; see berth prices --help`},
	{"prices import --wrong", "unknown flag: --wrong; see berth prices import --help"},
	{"prices import aws", "requires at least 2 arg(s), only received 1; see berth prices import --help"},
	{"prices import foo MISSING", "aws"},
	{"prices import aws MISSING", "MISSING"},
	{"prices import aws GARBAGE", "GARBAGE"},

	{"migrate foo", `unknown command "foo" for "berth migrate"; see berth migrate --help`},
	{"migrate cluster-autoscaler", "give values of its chart or its Deployment with --file, or its flags behind --"},
	{"migrate cluster-autoscaler --wrong", "unknown flag: --wrong; see berth migrate cluster-autoscaler --help"},
	{"migrate cluster-autoscaler foo", `"foo" is no flag of Cluster Autoscaler; give a file with --file, and flags behind --`},
	{"migrate cluster-autoscaler --file MISSING", "MISSING"},
	{"migrate cluster-autoscaler --file GARBAGE", "GARBAGE"},
}

// TestUsageErrors: whatever is wrong with a command line or a file that it names ends with exit code 2, on one line that
// says where, what and what to do.
func TestUsageErrors(t *testing.T) {
	folder := t.TempDir()
	garbage, kubeconfig := filepath.Join(folder, "garbage"), filepath.Join(folder, "kubeconfig")
	for path, text := range map[string]string{
		garbage:    "# A heading\n\n[a link](x) and: more\n",
		kubeconfig: "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", folder)
	files := strings.NewReplacer("MISSING", filepath.Join(folder, "missing"), "GARBAGE", garbage, "KUBECONFIG", kubeconfig, "FOLDER", folder,
		"SCENARIO", "../../examples/prices/batch.yaml", "DUMP", "../../examples/explain/dump.yaml")
	for _, x := range unusable {
		t.Run(x.line, func(t *testing.T) {
			if err := logsapi.ResetForTest(nil); err != nil {
				t.Fatal(err)
			}
			cmd := root()
			cmd.SetArgs(strings.Fields(files.Replace(x.line)))
			cmd.SetIn(strings.NewReader(""))
			var out, notes bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&notes)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a command that goes on has refused nothing
			defer cancel()
			err := cmd.ExecuteContext(ctx)
			if code := term.ExitCode(err); err == nil || code != term.ExitUsage {
				t.Errorf("exit code %d, want %d: %v", code, term.ExitUsage, err)
			}
			if err != nil && !strings.Contains(err.Error(), files.Replace(x.says)) {
				t.Errorf("it says\n%s\nwant\n%s", err, files.Replace(x.says))
			}
			if out.Len() > 0 {
				t.Errorf("it prints before it refuses:\n%s", &out)
			}
		})
	}
}
