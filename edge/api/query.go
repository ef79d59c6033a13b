package api

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

const (
	// A page of 5,000 pods takes some 3 MB of JSON; 500 is what Kubernetes' own clients ask for at a time.
	defaultLimit = 500
	maxLimit     = 5000
	// maxValue is how long the value of a parameter may be: longer than any name of Kubernetes.
	maxValue = 512
	// maxValues is how many values all parameters of a request may have together.
	maxValues = 64
)

// single are the parameters of which there is one: a second value would be one that nobody looks at. The others name
// something, and may be repeated.
var single = []string{"limit", "continue", "sort", "q", "step", "from", "to", "since", "before", "owner", "pods", "like"}

// checkQuery returns an error about parameters that the path doesn't have, or that are too long, too many or
// repeated though there is one of them.
func checkQuery(query url.Values, allowed []string) error {
	// Which of several errors is told depends on the order of a map: any of them is to be corrected.
	n := 0
	for name, values := range query {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("unknown parameter %.40q; there are %s", name, strings.Join(allowed, ", "))
		}
		if n += len(values); n > maxValues {
			return fmt.Errorf("more than %d parameters", maxValues)
		}
		if len(values) > 1 && slices.Contains(single, name) {
			return fmt.Errorf("%s is given %d times; give it once", name, len(values))
		}
		for _, v := range values {
			if len(v) > maxValue {
				return fmt.Errorf("%s is longer than %d characters", name, maxValue)
			}
		}
	}
	return nil
}

// number returns a parameter that is a number from least to most, or what holds without it.
func number(query url.Values, name string, without, least, most int) (int, error) {
	if !query.Has(name) {
		return without, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q; it must be a number from %d to %d", name, query.Get(name), least, most)
	}
	return n, nil
}

// page cuts a page out of items that are sorted by key, which is unique: limit of them after the key of
// ?continue=. It returns the page, and fills in the list.
func page[T any](query url.Values, items []T, key func(*T) string, list *v1alpha1.List) ([]T, error) {
	limit, err := number(query, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return nil, err
	}
	// total was counted by the caller, over all pages: a client may show how many there are after the first.
	// The key isn't signed and needn't be: a made-up one only says where in the list to begin, and what is there is checked
	// as on any other page. An item that has gone since leaves no gap, since the next greater key is taken.
	if from := query.Get("continue"); from != "" {
		raw, err := base64.RawURLEncoding.DecodeString(from)
		if err != nil {
			return nil, fmt.Errorf("continue is %q; it must be that of the page before", from)
		}
		after, _ := slices.BinarySearchFunc(items, string(raw), func(item T, last string) int {
			if key(&item) <= last {
				return -1
			}
			return 1
		})
		items = items[after:]
	}
	if len(items) > limit {
		items = items[:limit]
		list.Continue = base64.RawURLEncoding.EncodeToString([]byte(key(&items[limit-1])))
	}
	return items, nil
}
