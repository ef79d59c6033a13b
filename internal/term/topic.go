package term

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// Topic is what berth explain is asked about: how Berth is asked, and how its answer is printed. Query is
// that of observe.ExplainPath, with names escaped.
type Topic struct {
	Query string
	Print func(out io.Writer, raw []byte) error
}

// kinds are the names by which kubectl also knows what explain is asked about. Nodes is a topic of
// its own.
var kinds = map[string]string{"po": "pod", "pods": "pod", "podgroups": "podgroup", "no": "node", "groups": "group"}

// printNamespaced prints answers about the kinds whose objects are in namespaces.
var printNamespaced = map[string]func(io.Writer, []byte) error{"pod": PrintPod, "podgroup": PrintPodGroup}

// asKubectl returns the arguments with the kind in its first form, also of KIND/NAME.
func asKubectl(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	out := append([]string{args[0]}, args[1:]...)
	if kind, name, found := strings.Cut(args[0], "/"); found && len(args) == 1 {
		out = []string{kind, name}
	}
	out[0] = cmp.Or(kinds[out[0]], out[0])
	return out
}

// TopicOf reads the arguments of berth explain. called is what the user has typed to call this program, and
// namespace returns that of
// pods and pod groups given without one.
func TopicOf(called string, args []string, namespace func() (string, error)) (Topic, error) {
	args = asKubectl(args)
	switch {
	case len(args) == 2 && printNamespaced[args[0]] != nil && args[1] != "" && strings.Count(args[1], "/") <= 1:
		name := args[1]
		if !strings.Contains(name, "/") {
			ns, err := namespace()
			if err != nil {
				return Topic{}, err
			}
			name = ns + "/" + name
		}
		return Topic{args[0] + "=" + url.QueryEscape(name), printNamespaced[args[0]]}, nil
	case len(args) > 0 && args[0] == "podgroup":
		return Topic{}, fmt.Errorf("name one pod group: %s explain podgroup NAMESPACE/NAME", called)
	case len(args) == 1 && args[0] == "group":
		return Topic{"groups", PrintGroups}, nil
	case len(args) == 2 && args[0] == "group" && args[1] != "":
		return Topic{"group=" + url.QueryEscape(args[1]), PrintGroup}, nil
	case len(args) > 0 && args[0] == "group":
		return Topic{}, fmt.Errorf("name one node group: %s explain group NAME, or none for all: %[1]s explain group", called)
	case len(args) == 1 && args[0] == "nodes":
		return Topic{"nodes", PrintNodes}, nil
	case len(args) == 2 && args[0] == "node" && args[1] != "":
		return Topic{"node=" + url.QueryEscape(args[1]), PrintNode}, nil
	case len(args) > 0 && (args[0] == "node" || args[0] == "nodes"):
		return Topic{}, fmt.Errorf("name one node: %s explain node NAME, or show all: %[1]s explain nodes", called)
	}
	return Topic{}, fmt.Errorf("name a pod: %s explain pod NAMESPACE/NAME, a pod group: %[1]s explain podgroup NAMESPACE/NAME, a node group: %[1]s explain group NAME, or a node: %[1]s explain node NAME", called)
}
