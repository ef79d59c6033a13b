// Package extender calls HTTP extenders of kube-scheduler's protocol
// (k8s.io/kube-scheduler/extender/v1): filter, prioritize, preempt and bind.
//
// An Extender makes one call and checks that the answer is about what was asked. A
// Chain asks all extenders of a configuration in turn, for the core's questions
// (step.Consult). Which pods an extender concerns is decided in the core
// (framework.Extender). Messages are kube-scheduler's where it has them.
package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
)

// defaultTimeout is that of a call to an extender whose configuration has none.
const defaultTimeout = 5 * time.Second

// maxAnswer returns how many bytes an answer may have to a question of so many: a filter may send
// back whole nodes, written at more length, and reasons. As many answers as there are workers
// are in memory at a time.
func maxAnswer(question int64) int64 { return 16<<20 + 4*question }

// maxScore is the highest score that an extender gives.
const maxScore = extenderv1.MaxExtenderPriority

// Extender is one HTTP extender. Its methods may be called by several goroutines.
type Extender struct {
	cfg      kubeschedulerv1.Extender
	name     string // its address without what may be secret in it, for messages
	concerns framework.Extender
	client   *http.Client
	nodes    *nodeEncodings // shared by the extenders of a Chain
}

// New returns an extender; an error says what of its TLS settings can't be
// used.
func New(cfg kubeschedulerv1.Extender, concerns framework.Extender) (*Extender, error) {
	name := cfg.URLPrefix
	if u, err := url.Parse(name); err == nil {
		name = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	tls := rest.TLSClientConfig{}
	if t := cfg.TLSConfig; t != nil {
		tls = rest.TLSClientConfig{Insecure: t.Insecure, ServerName: t.ServerName,
			CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.CAFile, CertData: t.CertData, KeyData: t.KeyData, CAData: t.CAData}
	}
	// As kube-scheduler does: HTTPS that is asked for without a CA isn't verified.
	if cfg.EnableHTTPS && tls.CAFile == "" && len(tls.CAData) == 0 {
		tls.Insecure = true
	}
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: tls})
	if err != nil {
		return nil, fmt.Errorf("extender %s: tlsConfig: %w", name, err)
	}
	timeout := cfg.HTTPTimeout.Duration
	if timeout == 0 {
		timeout = defaultTimeout
	}
	return &Extender{cfg: cfg, name: name, concerns: concerns, client: &http.Client{Transport: transport, Timeout: timeout}, nodes: &nodeEncodings{}}, nil
}

// Concerns reports whether the extender is to be asked about a pod.
func (x *Extender) Concerns(pod *v1.Pod) bool { return x.concerns.Concerns(pod) }

// filterAnswer is an extenderv1.ExtenderFilterResult of which only the nodes' names are read: the
// nodes are those that the extender was sent, some 10 KiB each.
type filterAnswer struct {
	Nodes *struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	NodeNames                               *[]string
	FailedNodes, FailedAndUnresolvableNodes extenderv1.FailedNodesMap
	Error                                   string
}

// Filter returns which of the nodes the extender allows, and its reasons against
// others, by node. It is an error when the extender allows a node that it wasn't asked
// about.
func (x *Extender) Filter(ctx context.Context, pod *v1.Pod, nodes []*v1.Node) (allowed []*v1.Node, failed map[string]string, err error) {
	result := filterAnswer{}
	if err := x.call(ctx, x.cfg.FilterVerb, x.args(pod, nodes), &result); err != nil {
		return nil, nil, err
	}
	if result.Error != "" {
		return nil, nil, fmt.Errorf("extender %s: %s", x.name, door.Shorten(result.Error))
	}
	byName := map[string]*v1.Node{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	var names []string
	switch {
	case x.cfg.NodeCacheCapable && result.NodeNames != nil:
		names = *result.NodeNames
	case result.Nodes != nil:
		for i := range result.Nodes.Items {
			names = append(names, result.Nodes.Items[i].Metadata.Name)
		}
	}
	for _, name := range names {
		n := byName[name]
		if n == nil {
			return nil, nil, fmt.Errorf("extender %q claims a filtered node %q which is not found in the input node list", x.name, door.Shorten(name))
		}
		allowed = append(allowed, n)
	}
	failed = map[string]string{}
	for _, m := range []extenderv1.FailedNodesMap{result.FailedNodes, result.FailedAndUnresolvableNodes} {
		for name, why := range m {
			if byName[name] != nil {
				failed[name] = door.Shorten(why)
			}
		}
	}
	return allowed, failed, nil
}

// Prioritize returns the extender's scores, 0 to 10, by node, without its
// weight. Nodes that it wasn't asked about are left out.
func (x *Extender) Prioritize(ctx context.Context, pod *v1.Pod, nodes []*v1.Node) (map[string]int64, error) {
	result := extenderv1.HostPriorityList{}
	if err := x.call(ctx, x.cfg.PrioritizeVerb, x.args(pod, nodes), &result); err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	for _, n := range nodes {
		asked[n.Name] = true
	}
	out := map[string]int64{}
	for _, h := range result {
		if asked[h.Host] {
			out[h.Host] = max(0, min(maxScore, h.Score))
		}
	}
	return out, nil
}

// Bind has the extender bind a pod to a node.
func (x *Extender) Bind(ctx context.Context, args *extenderv1.ExtenderBindingArgs) error {
	result := extenderv1.ExtenderBindingResult{}
	if err := x.call(ctx, x.cfg.BindVerb, func() (*body, error) { return encoded(args) }, &result); err != nil {
		return err
	}
	if result.Error != "" {
		return fmt.Errorf("extender %s: %s", x.name, door.Shorten(result.Error))
	}
	return nil
}

// Preempt returns which of the candidate nodes the extender leaves for preemption, with
// the victims that it wants there. It is an error when it names another node, or a victim
// without a UID.
func (x *Extender) Preempt(ctx context.Context, args *extenderv1.ExtenderPreemptionArgs) (map[string]*extenderv1.MetaVictims, error) {
	result := extenderv1.ExtenderPreemptionResult{}
	if x.cfg.PreemptVerb == "" {
		return nil, errors.New("the extender has no preemptVerb")
	}
	if err := x.call(ctx, x.cfg.PreemptVerb, func() (*body, error) { return encoded(args) }, &result); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(result.NodeNameToMetaVictims)) {
		_, asked := args.NodeNameToVictims[name]
		_, askedByUID := args.NodeNameToMetaVictims[name]
		if !asked && !askedByUID {
			return nil, fmt.Errorf("extender %q claims a node %q for preemption that is not among the candidates", x.name, door.Shorten(name))
		}
		if err := checkMeant(result.NodeNameToMetaVictims[name]); err != nil {
			return nil, fmt.Errorf("extender %q: node %q: %w", x.name, name, err)
		}
	}
	return result.NodeNameToMetaVictims, nil
}

// checkMeant returns an error about victims that are no pods, and about a number of violated
// disruption budgets that is none. victims may be nil.
func checkMeant(victims *extenderv1.MetaVictims) error {
	if victims == nil {
		return nil
	}
	for i, p := range victims.Pods {
		if p == nil || p.UID == "" {
			return fmt.Errorf("victim %d has no UID", i)
		}
	}
	if victims.NumPDBViolations < 0 {
		return fmt.Errorf("%d violated disruption budgets", victims.NumPDBViolations)
	}
	return nil
}

// args returns what makes the body that an extender is sent to filter or score: names only
// when it knows the nodes itself.
func (x *Extender) args(pod *v1.Pod, nodes []*v1.Node) func() (*body, error) {
	if !x.cfg.NodeCacheCapable {
		return func() (*body, error) { return x.nodes.withNodes(pod, nodes) }
	}
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return func() (*body, error) { return encoded(extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}) }
}

// call posts a body of JSON and reads the answer into result. Anything but status 200 is
// an error, and there is no second attempt. A result has no amounts in it (door.Read).
func (x *Extender) call(ctx context.Context, verb string, args func() (*body, error), result any) error {
	b, err := args()
	if err != nil {
		return fmt.Errorf("encoding the request to extender %s: %w", x.name, err)
	}
	address := strings.TrimRight(x.cfg.URLPrefix, "/") + "/" + verb
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, b.reader())
	if err != nil {
		return fmt.Errorf("extender %s: %w", x.name, withoutAddress(err))
	}
	req.ContentLength, req.GetBody = b.size, func() (io.ReadCloser, error) { return b.reader(), nil }
	req.Header.Set("Content-Type", "application/json")
	resp, err := x.client.Do(req)
	if err != nil {
		return fmt.Errorf("calling extender %s: %w", x.name, withoutAddress(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("failed %v with extender at URL %v, code %v", verb, strings.TrimRight(x.name, "/")+"/"+verb, resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer(b.size))).Decode(result); err != nil {
		return fmt.Errorf("reading the response of extender %s to %s: %w", x.name, verb, err)
	}
	return nil
}

// withoutAddress returns an error of a call without the address that it names, which may have a
// user or a token in it: errors go into the status of pods.
func withoutAddress(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
