package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berthproject/berth/devcluster/controlplane"
)

// This file is viewers of Berth's API, with the identity of the cluster's administrator.
// They are the load of the case: what they get back is thrown away.

const apiPath = "/api/v1alpha1/"

// What the page asks for again, and how often, while all nodes of a large cluster and the charts are open. Of the nodes it
// asks for one page with each tick, and for the first after the last (nodesPage).
var asked = map[string]time.Duration{nodesPage: 2 * time.Second, "series?step=10s": 10 * time.Second, "pending": 2 * time.Second}

const nodesPage = "nodes?limit=1000"

// decided returns how long the pods waited for Berth's decision that a watch has shown since the last call, from
// Berth's own times of its decisions. It asks when nobody looks and no pod waits, so that it disturbs nothing.
func (v *viewing) decided(ctx context.Context) (out []time.Duration, err error) {
	client, err := rest.HTTPClientFor(toBerth(v.cluster.Config))
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	for before := uint64(0); ; {
		address := fmt.Sprintf("https://127.0.0.1:%d%sdecisions?kind=Placed&limit=1000&since=%d", v.port, apiPath, v.seq)
		if before > 0 { // the newest come first
			address += fmt.Sprintf("&before=%d", before)
		}
		var list struct {
			Items []struct {
				Seq  uint64
				Time time.Time
				Pod  string
			}
			Last uint64
			More bool
		}
		if err := get(ctx, client, address, &list); err != nil {
			return nil, err
		}
		for _, d := range list.Items {
			if came, ok := v.came.LoadAndDelete(strings.TrimPrefix(d.Pod, measured+"/")); ok {
				out = append(out, max(0, d.Time.Sub(came.(time.Time))))
			}
		}
		if !list.More || len(list.Items) == 0 {
			v.seq = max(v.seq, list.Last)
			return out, nil
		}
		before = list.Items[0].Seq
	}
}

// get reads an answer of JSON.
func get(ctx context.Context, client *http.Client, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // for the message only
		return fmt.Errorf("asking %s: %s: %s", address, resp.Status, said)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// toBerth returns how to reach Berth as the cluster's administrator.
func toBerth(cluster *rest.Config) *rest.Config {
	cfg := rest.CopyConfig(cluster)
	cfg.TLSClientConfig.Insecure, cfg.TLSClientConfig.CAData, cfg.TLSClientConfig.CAFile = true, nil, "" // Berth made its certificate itself
	return cfg
}

// ViewersCommand returns the component that looks at a Berth until it is told to end.
func ViewersCommand() *cobra.Command {
	var l looking
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "viewers", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			cluster, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			return l.run(ctx, toBerth(cluster))
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "")
	cmd.Flags().StringVar(&l.server, "server", "", "")
	cmd.Flags().IntVar(&l.viewers, "viewers", 0, "")
	cmd.Flags().IntVar(&l.stalled, "stalled", 0, "")
	return cmd
}

// look has the viewers of a kind look until leave is called. They are a process of their own, which takes no time of the
// processors that others want: real viewers have machines of their own.
func (v *viewing) look(work *errgroup.Group, k *ViewingKind) (leave func(), err error) {
	if k.Viewers+k.Stalled == 0 {
		return func() {}, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	viewers, err := controlplane.StartProcess("viewers", filepath.Join(v.cluster.Dir(), "viewers.log"), "nice", "-n", "19", program, "component", "viewers",
		"--kubeconfig", v.cluster.Kubeconfig, "--server", fmt.Sprintf("https://127.0.0.1:%d", v.port),
		"--viewers", strconv.Itoa(k.Viewers), "--stalled", strconv.Itoa(k.Stalled))
	if err != nil {
		return nil, err
	}
	work.Go(viewers.Wait)
	return func() { viewers.Stop(10 * time.Second) }, nil
}

// looking is viewers of a server.
type looking struct {
	server           string
	viewers, stalled int
}

// run has the viewers look until the context ends.
func (l *looking) run(ctx context.Context, cfg *rest.Config) error {
	work, ctx := errgroup.WithContext(ctx)
	for range l.viewers {
		// Each has a client of its own, since viewers don't share connections.
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return err
		}
		client.Timeout = 0 // a stream has no end
		work.Go(func() error {
			defer client.CloseIdleConnections()
			return view(ctx, client, l.server)
		})
	}
	// Stalled viewers speak HTTP by hand: a client would read what comes, and the point is
	// that nobody does.
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return err
	}
	for range l.stalled {
		work.Go(func() error { return stall(ctx, strings.TrimPrefix(l.server, "https://"), secure) })
	}
	return work.Wait()
}

// view follows the stream, and asks for what the page asks for. Answers that the API refuses to give while it is
// busy are a viewer's everyday; others are errors.
func view(ctx context.Context, client *http.Client, server string) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		_, err := ask(ctx, client, server+apiPath+"stream")
		return err
	})
	for path, every := range asked {
		next := "" // page
		again := func(int) (err error) {
			address := server + apiPath + path
			if path == nodesPage && next != "" {
				address += "&continue=" + url.QueryEscape(next)
			}
			next, err = ask(ctx, client, address)
			return err
		}
		all.Go(func() error {
			if err := again(0); err != nil {
				return err
			}
			return paced(ctx, every, 0, again)
		})
	}
	return all.Wait()
}

// ask reads an answer to its end, and returns where the list in it goes on, "" for nowhere.
// The end of the context is no error: that is how windows end.
func ask(ctx context.Context, client *http.Client, address string) (next string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(r)
	if err == nil {
		defer resp.Body.Close()
		// Berth answers 503 when its core is busy.
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
			said, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // for the message only
			return "", fmt.Errorf("viewing %s: %s: %s", address, resp.Status, said)
		}
		// Reading to the end lets the connection be used again, as a browser does.
		var list struct{ Continue string }
		if strings.Contains(address, nodesPage) && resp.StatusCode == http.StatusOK {
			err = json.NewDecoder(resp.Body).Decode(&list)
			next = list.Continue
		}
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
	}
	if ctx.Err() != nil {
		return "", nil
	}
	return next, wrapped("viewing "+address, err)
}

// stall opens a stream and reads nothing of it. What becomes of the connection is Berth's affair.
func stall(ctx context.Context, server string, secure *tls.Config) error {
	secure = secure.Clone()
	// HTTP/2 would need frames; with 1.1 one line of text is a request.
	secure.NextProtos = []string{"http/1.1"}
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: secure}).DialContext(ctx, "tcp", server)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return wrapped("stalling", err)
	}
	defer conn.Close()
	w := bufio.NewWriter(conn)
	fmt.Fprintf(w, "GET %sstream HTTP/1.1\r\nHost: %s\r\n\r\n", apiPath, server)
	if err := w.Flush(); err != nil && ctx.Err() == nil {
		return wrapped("stalling", err)
	}
	// The buffers in between fill, until Berth's writes block.
	<-ctx.Done()
	return nil
}
