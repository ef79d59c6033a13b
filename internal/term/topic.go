package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// This file reads the arguments of berth explain: a kind, as kubectl writes it, and a name.

// kind is what berth explain can be asked about.
type kind struct {
	names []string // the first is the kind's in KIND/NAME; the last two are its singular and its plural
	title string   // in a sentence
	list  string   // path of all of them
	// one and many are the types of the API's answers.
	one, many  string
	namespaced bool
	// explain prints one object, and explainAll all of them.
	explain    func(ctx context.Context, out io.Writer, from Source, path string) error
	explainAll func(ctx context.Context, out io.Writer, from Source) error
	// rows prints all of them as a table, a line each.
	rows func(out io.Writer, raw map[string]any) error
}

// The kinds.
var (
	podKind      = &kind{names: []string{"pod", "po", "pods"}, title: "pod", list: "pods", one: "PodDetail", many: "PodList", namespaced: true, explain: explainPod, explainAll: explainPending, rows: podRows}
	podGroupKind = &kind{names: []string{"podgroup", "pg", "podgroups"}, title: "pod group", list: "podgroups", one: "PodGroupDetail", many: "PodGroupList", namespaced: true, explain: explainPodGroup, explainAll: explainPodGroups}
	nodeKind     = &kind{names: []string{"node", "no", "nodes"}, title: "node", list: "nodes", one: "NodeDetail", many: "NodeList", explain: explainNode, explainAll: explainNodes, rows: nodeRows}
	groupKind    = &kind{names: []string{"group", "ng", "nodegroup", "nodegroups", "groups"}, title: "node group", list: "groups", one: "GroupDetail", many: "GroupList", explain: explainGroup, explainAll: explainGroups}

	allKinds = []*kind{podKind, podGroupKind, nodeKind, groupKind}
)

// kindOf returns the kind of a name, nil for none.
func kindOf(name string) *kind {
	for _, k := range allKinds {
		if slices.Contains(k.names, name) {
			return k
		}
	}
	return nil
}

// Topic is what berth explain is asked about: one object, or all of a kind when name is "".
type Topic struct {
	kind *kind
	name string // of a namespaced object with its namespace
}

// TopicOf reads the arguments of berth explain. called is what the user has typed to call this program, and
// namespace returns that of pods and pod groups given without one.
func TopicOf(called string, args []string, namespace func() (string, error)) (Topic, error) {
	if len(args) == 1 {
		if kind, name, found := strings.Cut(args[0], "/"); found {
			args = []string{kind, name}
		}
	}
	var k *kind
	if len(args) > 0 {
		k = kindOf(args[0])
	}
	switch {
	case k == nil:
		return Topic{}, Usage(fmt.Errorf("name a pod: %s explain pod NAMESPACE/NAME, a pod group: %[1]s explain podgroup NAMESPACE/NAME, a node group: %[1]s explain group NAME, or a node: %[1]s explain node NAME", called))
	case len(args) == 1 && (k == groupKind || args[0] != k.names[0]):
		return Topic{kind: k}, nil
	case len(args) != 2 || args[1] == "" || k.namespaced && !isObject(args[1]):
		where := ""
		if k.namespaced {
			where = "NAMESPACE/"
		}
		return Topic{}, Usage(fmt.Errorf("name one %s: %s explain %s %sNAME, or show all: %[2]s explain %[5]s", k.title, called, k.names[0], where, k.names[len(k.names)-1]))
	case k.namespaced && !strings.Contains(args[1], "/"):
		ns, err := namespace()
		if err != nil {
			return Topic{}, err
		}
		return Topic{k, ns + "/" + args[1]}, nil
	}
	return Topic{k, args[1]}, nil
}

// isObject reports whether a name can be that of a namespaced object: NAME or NAMESPACE/NAME.
func isObject(name string) bool {
	namespace, rest, found := strings.Cut(name, "/")
	return namespace != "" && (!found || rest != "" && !strings.Contains(rest, "/"))
}

// Explain asks about a topic, and prints the answer.
func (t Topic) Explain(ctx context.Context, out io.Writer, from Source, o *Output) error {
	own, err := o.Own()
	if err != nil {
		return err
	}
	path := escaped(t.kind.list, t.name)
	switch {
	case t.name != "" && own == Name:
		if _, err := from.Get(ctx, prefixed(path)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s/%s\n", t.kind.names[0], t.name)
		return err
	case t.name != "" && own != "":
		return t.kind.explain(ctx, out, from, path)
	case t.name != "":
		return o.PrintPath(ctx, out, from, t.kind.one, path)
	case own == Text, own == Wide && t.kind.rows == nil:
		return t.kind.explainAll(ctx, out, from)
	}
	all, err := t.kind.all(ctx, from)
	if err != nil {
		return err
	}
	switch own {
	case Wide:
		return t.kind.rows(out, all)
	case Name:
		return t.kind.printNames(out, all)
	}
	return o.Print(out, t.kind.many, all)
}

// all returns the list of all objects; of pods those that are pending, which are what there is to explain.
func (k *kind) all(ctx context.Context, from Source) (map[string]any, error) {
	switch k {
	case groupKind: // one page
		all, err := Read[map[string]any](ctx, from, k.list)
		if err != nil {
			return nil, err
		}
		return *all, nil
	case podKind:
		return ReadAll(ctx, from, k.list+"?state=pending")
	}
	return ReadAll(ctx, from, k.list)
}

// printNames writes KIND/NAME of each item.
func (k *kind) printNames(out io.Writer, all map[string]any) error {
	list, err := itemsOf[listed](all)
	if err != nil {
		return err
	}
	for _, x := range list {
		if _, err := fmt.Fprintf(out, "%s/%s\n", k.names[0], x); err != nil {
			return err
		}
	}
	return nil
}

// errOnlySchedules says why nothing is known of nodes' removal.
var errOnlySchedules = errors.New("Berth only schedules here and does not remove nodes") //nolint:staticcheck // Berth is a name

// errNoGroups says why nothing is known of node groups.
var errNoGroups = errors.New("no node groups are known: Berth only schedules, or its provider has not listed its groups yet")
