// Package expander has the expanders that ask somebody outside the process: grpc, whose
// server an operator writes against Cluster Autoscaler's protocol.
package expander

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/berthproject/berth/core/autoscaler/expander"
)

// How Cluster Autoscaler calls the server.
const (
	method      = "/grpcplugin.Expander/BestOptions"
	callTimeout = 5 * time.Second
	maxAnswer   = 128 << 20 // bytes
)

// GRPC asks a server which options are best. Of those that it names, in its own order,
// the ones that were offered stay; if it names none it forbids all, as it may with
// Cluster Autoscaler. When it doesn't answer within five seconds, fails, or names
// options only that weren't offered, all options stay, and a warning is logged; a server
// that doesn't answer or fails isn't asked again for the same plan, which would take its
// time for each round.
//
// One goroutine at a time may call it: the planner's.
type GRPC struct {
	ctx     context.Context // of the calls
	conn    *grpc.ClientConn
	timeout time.Duration
	log     *slog.Logger
	// failed is the request for whose plan the server has failed last, if any.
	failed *uint64
}

var _ expander.Strategy = (*GRPC)(nil)

// NewGRPC returns the expander that calls the server at a host:port, as long as the
// context lasts. cert is the path of a PEM file with the certificates that the server's
// may be signed by; as with Cluster Autoscaler there is no call without TLS. It connects
// with the first call. An error says what of the arguments can't be used.
func NewGRPC(ctx context.Context, url, cert string, log *slog.Logger) (*GRPC, error) {
	tls, err := credentials.NewClientTLSFromFile(cert, "")
	if err != nil {
		return nil, fmt.Errorf("--grpc-expander-cert: %w; it must be the path of a PEM file with the server's certificate or its CA's", err)
	}
	conn, err := grpc.NewClient(url, grpc.WithTransportCredentials(tls),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(wire{}), grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("--grpc-expander-url is %q: %w; it must be host:port", url, err)
	}
	context.AfterFunc(ctx, func() {
		if err := conn.Close(); err != nil {
			log.Warn("closing the connection to the gRPC expander", "server", url, "err", err)
		}
	})
	return &GRPC{ctx: ctx, conn: conn, timeout: callTimeout, log: log}, nil
}

// Best implements expander.Strategy.
func (g *GRPC) Best(r *expander.Round, options []expander.Option) []expander.Option {
	if len(options) == 0 || g.failed != nil && *g.failed == r.Request {
		return options
	}
	named, err := g.ask(options)
	if err != nil {
		request := r.Request
		g.failed = &request
		g.log.Warn("the gRPC expander is not reachable; no options filtered", "server", g.conn.Target(), "options", len(options), "err", err)
		return options
	}
	if len(named) == 0 {
		g.log.Info("the gRPC expander rejected all options", "server", g.conn.Target(), "options", len(options))
		return nil
	}
	best := g.offered(options, named)
	if len(best) == 0 {
		g.log.Warn("the gRPC expander returned none of the given options; no options filtered", "server", g.conn.Target(), "options", len(options))
		return options
	}
	return best
}

// ask returns the IDs of the node groups that the server names.
func (g *GRPC) ask(options []expander.Option) ([]string, error) {
	request, err := encodeRequest(options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(g.ctx, g.timeout)
	defer cancel()
	var answer []byte
	if err := g.conn.Invoke(ctx, method, &request, &answer); err != nil {
		return nil, err
	}
	return decodeResponse(answer)
}

// offered returns those options that the server has named, and warns of the others.
func (g *GRPC) offered(options []expander.Option, named []string) []expander.Option {
	is := map[string]bool{}
	for _, id := range named {
		is[id] = true
	}
	var best []expander.Option
	for i := range options {
		if id := options[i].Group.ID; is[id] {
			best = append(best, options[i])
			delete(is, id)
		}
	}
	for _, id := range named {
		if is[id] {
			g.log.Warn("the gRPC expander returned a node group that is not among the given options", "server", g.conn.Target(), "group", id)
			delete(is, id)
		}
	}
	return best
}
