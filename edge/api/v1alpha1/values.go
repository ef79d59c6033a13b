package v1alpha1

import (
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error is the body of every answer that isn't 200.
type Error struct {
	// Error says what is wrong and what to do.
	Error string `json:"error"`
}

// List is what all lists have.
type List struct {
	// At is when the core was asked. Answers of the same moment are shared by all viewers.
	At time.Time `json:"at"`
	// Total is how many items match the query, those of other pages and hidden ones included.
	Total int `json:"total"`
	// Hidden is how many of them are left out since the viewer may not read them.
	Hidden int `json:"hidden,omitempty"`
	// Continue is given as ?continue= for the next page, "" on the last one. A page that is asked for
	// later is of a later moment: items that came or went between two pages may be missing or repeated.
	Continue string `json:"continue,omitempty"`
}

// Price is an amount of money an hour, rounded to a millionth.
type Price float64

// MarshalJSON implements json.Marshaler.
func (p Price) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, math.Round(float64(p)*1e6)/1e6, 'f', -1, 64), nil
}

// Share is a part of a whole, rounded to a ten-thousandth: 1 is all of it. It may be more than 1.
type Share float64

// MarshalJSON implements json.Marshaler.
func (s Share) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, math.Round(float64(s)*1e4)/1e4, 'f', -1, 64), nil
}

// ResourceUse is how much of a resource is requested.
type ResourceUse struct {
	// Resource is a name of the API: cpu, memory, nvidia.com/gpu.
	Resource string `json:"resource"`
	// Requested may be more than Allocatable, when nodes shrank or were overcommitted.
	Requested   resource.Quantity `json:"requested"`
	Allocatable resource.Quantity `json:"allocatable"`
	// Share is Requested by Allocatable, 0 where nothing is allocatable.
	Share Share `json:"share"`
}

// Amount is how much of a resource something has or requests.
type Amount struct {
	Resource string            `json:"resource"`
	Quantity resource.Quantity `json:"quantity"`
}

// Owner is the controller of a pod.
type Owner struct {
	// Kind is Deployment for a pod of a ReplicaSet that a Deployment has made.
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Duration is written as "1m30s".
type Duration = metav1.Duration
