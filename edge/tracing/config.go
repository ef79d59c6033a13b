package tracing

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/version"
)

// kind is that of the file, which kube-apiserver and the kubelet have, too.
const kind = "TracingConfiguration"

// versions are the API versions by which kube-apiserver knows it.
var versions = []string{"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"}

// file is a tracing configuration as it is written.
type file struct {
	metav1.TypeMeta                 `json:",inline"`
	tracingapi.TracingConfiguration `json:",inline"`
}

// maxSize is how long the file may be, in bytes.
const maxSize = 1 << 20

// load reads the file of --tracing-config-file. Errors name it.
func load(path string) (*tracingapi.TracingConfiguration, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	raw, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: reading %s: %w", path, err)
	}
	var c file
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %s: %w", path, err)
	}
	if c.Kind != kind || !slices.Contains(versions, c.APIVersion) {
		return nil, fmt.Errorf("--tracing-config-file: %s: apiVersion is %q and kind %q; they must be %s (%s) and %s", path, c.APIVersion, c.Kind, versions[0], strings.Join(versions[1:], ", "), kind)
	}
	if errs := tracingapi.ValidateTracingConfiguration(&c.TracingConfiguration, nil, nil); len(errs) > 0 {
		return nil, fmt.Errorf("--tracing-config-file: %s: %w", path, errs.ToAggregate())
	}
	return &c.TracingConfiguration, nil
}

// Open returns what makes the spans that a file asks for; nil when path is "". It connects to the collector when
// there is something to send.
func Open(ctx context.Context, path string, log *slog.Logger) (*Tracer, error) {
	if path == "" {
		return nil, nil
	}
	c, err := load(path)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // "" says that it isn't known
	otel.SetErrorHandler(&complaints{log: log})
	spans, err := tracing.NewProvider(ctx, c, nil, []resource.Option{resource.WithFromEnv(), resource.WithAttributes(
		attribute.String("service.name", "berth"), attribute.String("service.version", version.Get().Version), attribute.String("service.instance.id", host))})
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %s: %w", path, err)
	}
	return newTracer(spans), nil
}

// Hooks returns the hooks with the tracer's behind them, if there is one.
func (t *Tracer) Hooks(hooks ...drive.Hook) []drive.Hook {
	if t == nil {
		return hooks
	}
	return append(hooks, t)
}

// shutdownTimeout is how long the last spans may take to be sent.
const shutdownTimeout = 5 * time.Second

// Close sends what isn't sent yet.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := t.spans.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// complaints logs errors of the SDK, such as a collector that isn't there; each once until another comes.
type complaints struct {
	log  *slog.Logger
	last atomic.Value // string
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	if text := err.Error(); c.last.Swap(text) != text {
		c.log.Warn("spans can't be exported; they are dropped", "err", text)
	}
}
