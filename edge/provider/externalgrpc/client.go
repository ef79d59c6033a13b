package externalgrpc

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
)

// Client is the provider that a server makes. Every call has a deadline. It connects with the
// first call, and again when the connection was lost.
type Client struct {
	conn     *grpc.ClientConn
	server   protocol.CloudProviderClient
	timeout  time.Duration        // of a call
	defaults cluster.GroupOptions // what the flags say, sent with each question for options
	now      func() time.Time     // the clock
	log      *slog.Logger
	nodes    nodes

	reading sync.Mutex             // held by Groups; guards what is below
	known   map[string]*knownGroup // by ID, the groups of the last list
	absent  map[string]bool        // calls that the server doesn't implement; see optional
	said    door.Complaints
}

var _ nodegroup.Provider = (*Client)(nil)

// NewClient returns a provider for the server of a configuration. All fields of defaults must be
// set: they are the flags that options may replace. now is the clock.
func NewClient(cfg *Config, defaults cluster.GroupOptions, now func() time.Time, log *slog.Logger) (*Client, error) {
	conn, err := cfg.dial()
	if err != nil {
		return nil, err
	}
	return &Client{
		conn: conn, server: protocol.NewCloudProviderClient(conn), timeout: cfg.timeout(), defaults: defaults,
		now: now, log: log.With("server", cfg.Address), nodes: newNodes(),
		known: map[string]*knownGroup{}, absent: map[string]bool{}, said: door.Complaints{},
	}, nil
}

// Cleanup tells the server that its client goes away. A server that has no such call is no error.
func (c *Client) Cleanup(ctx context.Context) error {
	_, err := invoke(ctx, c, "Cleanup", c.server.Cleanup, &protocol.CleanupRequest{})
	if leftOut(err) {
		return nil
	}
	return err
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// invoke makes a call within its deadline.
func invoke[Q, A any](ctx context.Context, c *Client, name string, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) (A, error) {
	return invokeWithin(ctx, c.timeout, name, call, request)
}

func invokeWithin[Q, A any](ctx context.Context, timeout time.Duration, name string, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := call(ctx, request)
	if err != nil {
		return answer, callError(name, err)
	}
	return answer, nil
}

// IncreaseSize implements nodegroup.Provider.
func (c *Client) IncreaseSize(ctx context.Context, group string, delta int) error {
	if delta <= 0 || delta > math.MaxInt32 {
		return fmt.Errorf("increasing node group %q by %d: the protocol takes 1 to %d", group, delta, math.MaxInt32)
	}
	_, err := invoke(ctx, c, "NodeGroupIncreaseSize", c.server.NodeGroupIncreaseSize, &protocol.NodeGroupIncreaseSizeRequest{Id: group, Delta: int32(delta)})
	return wrap(err, "increasing node group %q by %d", group, delta)
}

// DeleteNodes implements nodegroup.Provider. Nodes are sent with the labels and annotations that
// they had last. The protocol has one answer for all of them: after an error any of them may be gone,
// which the next list shows.
func (c *Client) DeleteNodes(ctx context.Context, group string, instances []nodegroup.Instance) error {
	request := &protocol.NodeGroupDeleteNodesRequest{Id: group}
	for i := range instances {
		request.Nodes = append(request.Nodes, c.nodes.message(&instances[i]))
	}
	_, err := invokeWithin(ctx, deletionTimeout(c.timeout, len(instances)), "NodeGroupDeleteNodes", c.server.NodeGroupDeleteNodes, request)
	return wrap(err, "deleting %d nodes of group %q", len(instances), group)
}

// longestDeletion is how long one call for many nodes may take, unless grpc_timeout is longer.
const longestDeletion = 2 * time.Minute

// deletionTimeout returns how long a call that deletes so many nodes may take: the timeout of a
// call for each, since many servers delete one instance after the other.
func deletionTimeout(each time.Duration, nodes int) time.Duration {
	return max(each, min(each*time.Duration(max(nodes, 1)), longestDeletion))
}

// DecreaseTargetSize implements nodegroup.Provider.
func (c *Client) DecreaseTargetSize(ctx context.Context, group string, delta int) error {
	if delta <= 0 || delta > math.MaxInt32 {
		return fmt.Errorf("decreasing node group %q by %d: the protocol takes 1 to %d", group, delta, math.MaxInt32)
	}
	_, err := invoke(ctx, c, "NodeGroupDecreaseTargetSize", c.server.NodeGroupDecreaseTargetSize, &protocol.NodeGroupDecreaseTargetSizeRequest{Id: group, Delta: -int32(delta)})
	return wrap(err, "decreasing node group %q by %d", group, delta)
}

// wrap says what was being done when there is an error, which keeps its class.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// warn logs what is wrong with something, "" for nothing, when that has changed. The caller holds
// reading.
func (c *Client) warn(about, why string) {
	switch {
	case !c.said.IsNews(about, why):
	case why == "":
		c.log.Info("external provider recovered", "about", about)
	default:
		c.log.Warn("external provider problem", "about", about, "err", why)
	}
}

// serverMayBeAnother forgets which calls the server doesn't implement when it wasn't reached: it
// may be one of another version when it is back. The caller holds reading.
func (c *Client) serverMayBeAnother(err error) {
	if hasCode(err, codes.Unavailable) {
		clear(c.absent)
	}
}
