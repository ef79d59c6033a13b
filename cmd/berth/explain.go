package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim/report"
)

// This file asks a running Berth about a pod, node groups or nodes, over the HTTPS server of
// edge/observe, and prints the answer. What must hold: each way to fail names the flag to
// look at.

// explainFlags are the flags of berth explain.
type explainFlags struct {
	server    string // address of Berth, such as https://localhost:10259
	tokenFile string // path, "" to ask without a token
	ca        string // path of certificates in PEM, "" for those of the system
	insecure  bool   // accept any certificate
	output    string // text or json
}

func explainCommand() *cobra.Command {
	f := &explainFlags{}
	cmd := &cobra.Command{
		Use:   "explain pod NAMESPACE/NAME | group [NAME] | node NAME | nodes",
		Short: "Say why a pod of a live cluster is where it is, or nowhere, where its node groups stand, and why nodes stay",
		Long: `Explain asks a running Berth about a pod: where it stands, which rule rejects
which nodes and by how much the nearest falls short, what would help, what makes
up the scores of the nodes that would do, and what was decided of it so far. For
a pod that waits it says of each node group why it was or wasn't bought, which
node is coming, and when it is expected.

Of a node group it says how large it is, what limits it, whether it backs off and
why, what is launching, and what it was last asked for and why; without a name,
in a line for each group.

Of a node it says why it stays, with the pod or the limit that keeps it, since
when, and what would change that; or since when it could go, what it waits for,
and which nodes have room for its pods. Of all nodes it says on one screen how
many stay for which reason, how many could go, and what they cost. Times are UTC.

Who asks has to be allowed to get the path /debug/explain, by a ClusterRole with
nonResourceURLs; the token is that of a service account, say.`,
		Example: `  kubectl -n kube-system port-forward deploy/berth 10259 &
  kubectl -n kube-system create token reader > token
  berth explain pod default/web-0 --token-file token --insecure-skip-tls-verify
  berth explain group --token-file token --insecure-skip-tls-verify
  berth explain group spot-a --token-file token --insecure-skip-tls-verify
  berth explain nodes --token-file token --insecure-skip-tls-verify
  berth explain node worker-7 --token-file token --insecure-skip-tls-verify`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := parseTopic(args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTopic(args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), t)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

// register adds the flags that say which Berth is asked, and as whom.
func (f *explainFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.server, "server", fmt.Sprintf("https://localhost:%d", observe.Port), "where Berth serves")
	fs.StringVar(&f.tokenFile, "token-file", "", "path to a file with a bearer token")
	fs.StringVar(&f.ca, "certificate-authority", "", "path to the certificate that Berth's is signed with")
	fs.BoolVar(&f.insecure, "insecure-skip-tls-verify", false, "don't check Berth's certificate, as for one that it made itself")
}

// topic is what explain is asked about: how Berth is asked, and how its answer is printed.
type topic struct {
	query string
	print func(out io.Writer, raw []byte) error
}

// parseTopic reads the arguments.
func parseTopic(args []string) (topic, error) {
	switch {
	case len(args) == 2 && args[0] == "pod" && strings.Count(args[1], "/") == 1:
		return topic{"pod=" + url.QueryEscape(args[1]), printPod}, nil
	case len(args) == 1 && args[0] == "group":
		return topic{"groups", printGroups}, nil
	case len(args) == 2 && args[0] == "group" && args[1] != "":
		return topic{"group=" + url.QueryEscape(args[1]), printGroup}, nil
	case len(args) > 0 && args[0] == "group":
		return topic{}, errors.New("give one node group as: berth explain group NAME, or none for all: berth explain group")
	case len(args) == 1 && args[0] == "nodes":
		return topic{"nodes", printNodes}, nil
	case len(args) == 2 && args[0] == "node" && args[1] != "":
		return topic{"node=" + url.QueryEscape(args[1]), printNode}, nil
	case len(args) > 0 && (args[0] == "node" || args[0] == "nodes"):
		return topic{}, errors.New("give one node as: berth explain node NAME, or ask for all together: berth explain nodes")
	}
	return topic{}, errors.New("give the pod as: berth explain pod NAMESPACE/NAME, the node group as: berth explain group NAME, or the node as: berth explain node NAME")
}

// run asks about a topic, and prints the answer: as it came with --output=json.
func (f *explainFlags) run(ctx context.Context, out io.Writer, t topic) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output is %q; it must be text or json", f.output)
	}
	raw, err := f.ask(ctx, "/debug/explain?"+t.query)
	if err != nil {
		return err
	}
	if f.output == "json" {
		_, err := out.Write(raw)
		return err
	}
	if err := t.print(out, raw); err != nil {
		return fmt.Errorf("printing the answer of %s: %w", f.server, err)
	}
	return nil
}

func printPod(out io.Writer, raw []byte) error {
	x := observe.Explained{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if err := report.Explanation(out, &x.Explanation, x.At.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

func printGroup(out io.Writer, raw []byte) error {
	x := observe.ExplainedGroup{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if err := report.Group(out, &x.GroupExplanation, x.At.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

func printGroups(out io.Writer, raw []byte) error {
	x := observe.ExplainedGroups{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	return report.Groups(out, x.Groups)
}

func printNode(out io.Writer, raw []byte) error {
	x := observe.ExplainedNode{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if err := report.Node(out, &x.NodeExplanation, x.At.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

func printNodes(out io.Writer, raw []byte) error {
	x := observe.ExplainedNodes{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	return report.Nodes(out, &x.NodesExplanation, x.At.UTC().Format(time.DateTime))
}

// printDecisions lists what the ledger has about a pod, a node group or a node, with the scores
// of choices.
func printDecisions(out io.Writer, decisions []step.Decision) {
	if len(decisions) > 0 {
		fmt.Fprintln(out, "\nWhat was decided:")
	}
	for i := range decisions {
		d := &decisions[i]
		fmt.Fprintf(out, "  %s  #%d %s\n", d.Time.UTC().Format("2006-01-02 15:04:05.000"), d.Seq, d)
		if len(d.Scores) > 0 {
			fmt.Fprintf(out, "      score %d:", d.Score)
			for _, s := range d.Scores {
				fmt.Fprintf(out, " %s %d", s.Plugin, s.Score)
			}
			if d.RunnerUp != nil {
				fmt.Fprintf(out, "; next was %s with %d", d.RunnerUp.Node, d.RunnerUp.Score)
			}
			fmt.Fprintln(out)
		}
	}
}

// tlsConfig says which certificate of Berth is accepted.
func (f *explainFlags) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{InsecureSkipVerify: f.insecure} //nolint:gosec // the user says so
	if f.ca == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("--certificate-authority: %w", err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--certificate-authority: %s has no certificate in PEM", f.ca)
	}
	return cfg, nil
}

// ask gets a path of a running Berth's server and returns the body of a good answer, of
// which it reads 16 MiB at most.
func (f *explainFlags) ask(ctx context.Context, path string) ([]byte, error) {
	certificates, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	// Berth answers between two Steps, and gives up long before this (503).
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(f.server, "/")+path, nil)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	if f.tokenFile != "" {
		token, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: certificates}}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking Berth: %w; check --server, and --certificate-authority or --insecure-skip-tls-verify", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("asking Berth: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, f.refusal(resp, body)
	}
	return body, nil
}

// refusal returns the error of an answer without an explanation: what to do about it,
// where that is known, else what Berth says.
func (f *explainFlags) refusal(resp *http.Response, body []byte) error {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return errors.New("it isn't known who asks (401); give a token with --token-file")
	case http.StatusForbidden:
		path := resp.Request.URL.Path
		return fmt.Errorf("who asks may not get %s (403); give them a ClusterRole with nonResourceURLs: [%[1]s], verbs: [get]", path)
	}
	answer := struct{ Error string }{}
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		return errors.New(answer.Error)
	}
	return fmt.Errorf("the answer of %s has status %s", f.server, resp.Status)
}
