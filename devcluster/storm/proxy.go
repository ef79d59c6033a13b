package storm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// proxy stands between one Berth and the API server, or before the node groups. TLS passes through
// it, so it can delay and lose bytes, and can't read them. Its methods are for one goroutine at a time.
type proxy struct{ p *toxiproxy.Proxy }

// newProxy returns a proxy that listens on a free port and leads to an address.
func newProxy(name, upstream string) (*proxy, error) {
	log := zerolog.Nop()
	p := &proxy{toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log), name, "127.0.0.1:0", upstream)}
	return p, p.up()
}

// address is where the proxy listens, the same after down and up.
func (p *proxy) address() string { return p.p.Listen }

// down cuts all connections and refuses new ones until up.
func (p *proxy) down() { p.p.Stop() }

// up lets connections through again, at the same address.
func (p *proxy) up() error {
	if err := p.p.Start(); err != nil {
		return fmt.Errorf("starting the proxy on %s: %w", p.p.Listen, err)
	}
	return nil
}

// cut cuts all connections; new ones are let through.
func (p *proxy) cut() error {
	p.down()
	return p.up()
}

// Ways of the bytes through a proxy.
var (
	bothWays = []string{"upstream", "downstream"}
	answers  = []string{"downstream"} // back to who has connected
)

// afflict adds a toxic of toxiproxy's on some ways, to a share of the connections that exist and
// that come. heal takes it away again.
func (p *proxy) afflict(ways []string, kind string, share float64, attributes map[string]int) error {
	for _, way := range ways {
		raw, err := json.Marshal(map[string]any{"name": kind + way, "type": kind, "stream": way, "toxicity": share, "attributes": attributes})
		if err != nil {
			return err
		}
		if _, err := p.p.Toxics.AddToxicJson(bytes.NewReader(raw)); err != nil {
			return fmt.Errorf("adding %s to the proxy on %s: %w", kind, p.p.Listen, err)
		}
	}
	return nil
}

// heal takes all toxics away. Bytes that were delayed arrive then; connections that lost
// bytes are closed.
func (p *proxy) heal(ctx context.Context) { p.p.Toxics.ResetToxics(ctx) }
