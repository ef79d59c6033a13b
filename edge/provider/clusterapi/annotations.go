package clusterapi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/config/nodeprices"
	"github.com/berthproject/berth/core/cluster"
)

// This file reads the limits, the options and the price of a group from the annotations of its object.
// The names are those of Cluster Autoscaler's provider, but for the price.

// DefaultGroup is the API group of Cluster API. Another one, as CAPI_GROUP gives it to Cluster
// Autoscaler, changes the names of the annotations, too.
const DefaultGroup = "cluster.x-k8s.io"

// keys are the names that begin with the API group, but for paused: Cluster API has that one under its
// own name whatever CAPI_GROUP is.
type keys struct{ min, max, options, deleteMachine, paused string }

func keysOf(group string) keys {
	return keys{
		min: group + "/cluster-api-autoscaler-node-group-min-size", max: group + "/cluster-api-autoscaler-node-group-max-size",
		options: group + "/autoscaling-options-", deleteMachine: group + "/delete-machine", paused: DefaultGroup + "/paused",
	}
}

// limits returns the limits of a group. An object is one when it has a maximum above 0; its
// minimum is 0 when it isn't said. max is 0 for an object that is no group.
func (k *keys) limits(annotations map[string]string) (lowest, highest int, err error) {
	raw, ok := annotations[k.max]
	if !ok {
		return 0, 0, nil
	}
	if highest, err = size(k.max, raw); err != nil {
		return 0, 0, err
	}
	if raw, ok = annotations[k.min]; ok {
		if lowest, err = size(k.min, raw); err != nil {
			return 0, 0, err
		}
	}
	if lowest > highest {
		return 0, 0, fmt.Errorf("annotation %s is %d and %s is %d; the minimum must not be above the maximum", k.min, lowest, k.max, highest)
	}
	return lowest, highest, nil
}

func size(key, raw string) (int, error) {
	n, err := strconv.ParseInt(raw, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("annotation %s is %q; it must be a whole number from 0 to %d", key, raw, math.MaxInt32)
	}
	return int(n), nil
}

// The options that a group may have, as they are named after the prefix.
const (
	utilizationThreshold    = "scaledownutilizationthreshold"
	gpuUtilizationThreshold = "scaledowngpuutilizationthreshold"
	unneededTime            = "scaledownunneededtime"
	unreadyTime             = "scaledownunreadytime"
	provisionTime           = "maxnodeprovisiontime"
	startupTime             = "maxnodestartuptime"
)

// groupOptions returns the options of a group, nil for none, and what is wrong with annotations,
// "" for nothing. An option that can't be read is left out, so that the flag holds. The remark is
// logged when it changes; the group can be used all the same.
func (k *keys) groupOptions(annotations map[string]string) (*cluster.GroupOptions, string) {
	var o cluster.GroupOptions
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, k.options)
		raw := strings.ToLower(annotations[key])
		if !ok || raw == "" {
			continue
		}
		var want string
		switch name {
		case utilizationThreshold:
			want = ratio(raw, &o.UtilizationThreshold)
		case gpuUtilizationThreshold:
			want = ratio(raw, &o.GPUUtilizationThreshold)
		case unneededTime:
			want = duration(raw, 0, &o.UnneededTime)
		case unreadyTime:
			want = duration(raw, 0, &o.UnreadyTime)
		case provisionTime:
			want = duration(raw, 1, &o.ProvisionTime)
		case startupTime:
			want = duration(raw, 1, &o.StartupTime)
		default:
			want = "there is no such option"
		}
		if want != "" {
			wrong = append(wrong, fmt.Sprintf("annotation %s is %q; %s; the flag applies", key, annotations[key], want))
		}
	}
	if o == (cluster.GroupOptions{}) {
		return nil, strings.Join(wrong, "; ")
	}
	return &o, strings.Join(wrong, "; ")
}

// PriceAnnotation is what a node of a group costs an hour. It is Berth's own: Cluster Autoscaler's
// provider has no prices.
const PriceAnnotation = "berth.dev/price-per-hour"

// price returns the price of a group, 0 when it isn't known, and what is wrong with its annotation, ""
// for nothing.
func price(annotations map[string]string) (float64, string) {
	raw, ok := annotations[PriceAnnotation]
	if !ok {
		return 0, ""
	}
	out, err := nodeprices.ParsePrice(raw)
	if err != nil {
		return 0, fmt.Sprintf("annotation %s is %q; %v; the price is unknown", PriceAnnotation, raw, err)
	}
	return out, ""
}

// ratio reads a ratio, or returns what would be accepted.
func ratio(raw string, to **float64) string {
	v, err := strconv.ParseFloat(raw, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return "it must be a ratio from 0 to 1"
	}
	*to = &v
	return ""
}

// duration reads a duration of at least lowest, or returns what would be accepted.
func duration(raw string, lowest time.Duration, to **metav1.Duration) string {
	v, err := time.ParseDuration(raw)
	if err != nil || v < lowest {
		return "it must be a duration such as 10m0s"
	}
	*to = &metav1.Duration{Duration: v}
	return ""
}
