package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// This file measures: when pods were bound, how many calls the API server has answered,
// how often a scheduler has tried. What must hold: what measuring costs is small and the
// same for each contender.

// counter records when each measured pod was bound, by a watch of the metadata of bound
// pods only.
type counter struct {
	mu    sync.Mutex
	bound []time.Time // when the watch showed a bind, in order; guarded by mu
}

// count returns how many pods are bound.
func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.bound)
}

// times returns when each pod that is bound so far was, in order.
func (c *counter) times() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bound)
}

// startCounter returns a counter that counts until the context ends. No pod may be bound
// before it.
func startCounter(ctx context.Context, cfg *rest.Config) (*counter, error) {
	c := &counter{}
	return c, watchBound(ctx, cfg, func(string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bound = append(c.bound, time.Now())
	})
}

// watchBound calls f with the name of each measured pod that has been bound, one after the other, until the
// context ends. It returns when the watch has begun.
func watchBound(ctx context.Context, cfg *rest.Config, f func(name string)) error {
	return watchPods(ctx, cfg, "spec.nodeName!=", f)
}

// watchPods calls f for each measured pod that a field selector matches, when a watch shows it first.
func watchPods(ctx context.Context, cfg *rest.Config, selector string, f func(name string)) error {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	pods := metadatainformer.NewFilteredMetadataInformer(client, v1.SchemeGroupVersion.WithResource("pods"), measured, 0, nil,
		func(o *metav1.ListOptions) { o.FieldSelector = selector })
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		f(obj.(*metav1.PartialObjectMetadata).Name)
	}}); err != nil {
		return err
	}
	go pods.Informer().RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

// Rates are the pods per second of a run. Time begins with the first bind, or with the
// scheduler's start where other pods have to leave first. Percentiles are of samples of
// one second, taken as scheduler_perf takes them: from the first second with a bind on,
// and seconds without one share a sample with the next that has one.
type Rates struct {
	Mean float64 `json:"mean"` // pods per second, until the last pod
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
}

// rates returns the rates of binds, which are in order; time begins at first.
func rates(first time.Time, bound []time.Time) Rates {
	r := Rates{}
	last := bound[len(bound)-1]
	if d := last.Sub(first).Seconds(); d > 0 {
		r.Mean = float64(len(bound)) / d
	}
	perSecond := make([]int, int(last.Sub(first)/time.Second)+1)
	for _, t := range bound {
		perSecond[int(t.Sub(first)/time.Second)]++
	}
	var samples []float64
	empty := 0
	for _, n := range perSecond[:len(perSecond)-1] { // the last second isn't whole
		if n == 0 {
			empty++
			continue
		}
		for range empty + 1 {
			samples = append(samples, float64(n)/float64(empty+1))
		}
		empty = 0
	}
	if samples == nil {
		return r
	}
	slices.Sort(samples)
	at := func(percent int) float64 { return samples[int(math.Ceil(float64(len(samples)*percent)/100))-1] }
	r.P50, r.P90, r.P95, r.P99 = at(50), at(90), at(95), at(99)
	return r
}

// scrape reads metrics as text.
func scrape(raw io.Reader) (map[string]*dto.MetricFamily, error) {
	p := expfmt.NewTextParser(model.LegacyValidation)
	return p.TextToMetricFamilies(raw)
}

// calls are API calls by what they do: "POST pods/binding".
type calls map[string]float64

// calls reads how many calls the API server has answered.
func (b *bench) calls(ctx context.Context) (calls, error) {
	raw, err := b.client.CoreV1().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	defer raw.Close()
	families, err := scrape(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	out := calls{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		key := labels["verb"] + " " + labels["resource"]
		if s := labels["subresource"]; s != "" {
			key += "/" + s
		}
		if labels["resource"] != "" && key != "POST pods" { // the benchmark itself creates the pods
			out[key] += m.GetCounter().GetValue()
		}
	}
	return out, nil
}

// since returns the calls made since before.
func (c calls) since(before calls) calls {
	out := calls{}
	for k, n := range c {
		if d := n - before[k]; d > 0 {
			out[k] = d
		}
	}
	return out
}

// afterBinds returns how many of those calls were made that a scheduler makes after its
// binds: events and statuses.
func (c calls) afterBinds() float64 {
	return c["POST events"] + c["PATCH events"] + c["PATCH pods/status"]
}

// attempts reads from a scheduler's own metrics how often it tried to place a pod.
func attempts(ctx context.Context, port int) (float64, error) {
	// It serves with a certificate that it made itself, on loopback.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", port), http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // for the message only
		return 0, fmt.Errorf("reading the scheduler's metrics: %s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	families, err := scrape(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	var n float64
	for _, m := range families["scheduler_schedule_attempts_total"].GetMetric() {
		n += m.GetCounter().GetValue()
	}
	return n, nil
}
