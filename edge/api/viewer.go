package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// This file says whose names a viewer sees: those of pods that the API server lets this user list (SubjectAccessReview). There
// is no second set of rights beside that.
//
// What must hold: what isn't known is hidden; no right holds longer than rightHolds after it was withdrawn; and no request asks
// the API server more than newRights times.

// Rights say whose pods a user may read. A nil Rights allows all.
type Rights struct {
	authorizer authorizer.Authorizer
	now        func() time.Time

	mu    sync.Mutex
	known map[right]verdict
}

// right is that of a user, as identity returns it, to list the pods of a namespace, "" for all.
type right struct{ user, namespace string }

// verdict is what the authorizer has said, and until when that is taken as it was.
type verdict struct {
	may   bool
	until time.Time
}

const (
	// rightHolds is for how long a viewer who may list pods is taken to, and refusalHolds for how long one who may not isn't
	// asked about again. With newRights questions a tick, the rights in 1,920 namespaces are known at a time, if few of
	// them may be read. In a shorter time the first would be asked about again before the last, and what a viewer
	// of few among many namespaces is shown would come and go.
	rightHolds, refusalHolds = 30 * time.Second, time.Minute
	// knownRights is how many verdicts are kept at most.
	knownRights = 8192
	// newRights is the number of namespaces about which one request asks the API server at most. Pods in the others
	// count as hidden until a later request has asked about these.
	newRights = 64
)

// NewRights returns rights by an authorizer: who may list pods may read them.
func NewRights(a authorizer.Authorizer) *Rights {
	return &Rights{authorizer: a, now: time.Now, known: map[right]verdict{}}
}

// viewer is who asks. It is for one request, in one goroutine.
type viewer struct {
	ctx    context.Context
	user   user.Info // nil when nobody says who asks
	id     string    // of the user, as identity returns it
	rights *Rights   // nil when everything may be read
	all    bool      // nothing is hidden
	may    map[string]bool
	left   int // of newRights
}

// viewer returns who has sent a request.
func (r *Rights) viewer(req *http.Request) *viewer {
	v := &viewer{ctx: req.Context(), may: map[string]bool{}, left: newRights}
	if u, known := apirequest.UserFrom(req.Context()); known {
		v.user, v.id = u, identity(u)
	}
	if v.rights = r; r == nil {
		v.all = true
		return v
	}
	// One question decides for most viewers: who may list pods of all namespaces is asked about none of them.
	v.all = v.check("")
	return v
}

// name returns the user's name, "" when it isn't known. Turns and streams are counted by it: two tokens of one user share
// them, unlike rights.
func (v *viewer) name() string {
	if v.user == nil {
		return ""
	}
	return v.user.GetName()
}

// sees reports whether the viewer may read the pods of a namespace. Within one request the answer stays as it was first,
// so that counts and lists of one answer agree.
func (v *viewer) sees(namespace string) bool {
	if v.all {
		return true
	}
	may, known := v.may[namespace]
	if !known {
		may = v.check(namespace)
		v.may[namespace] = may
	}
	return may
}

// pod returns the name of a pod given as namespace/name, and "" when the viewer may not read it.
func (v *viewer) pod(name string) string {
	namespace, _, _ := strings.Cut(name, "/")
	if name == "" || !v.sees(namespace) {
		return ""
	}
	return name
}

// pods returns those of the names that the viewer may read, in their order, and how many are left out.
func (v *viewer) pods(names []string) (out []string, hidden int) {
	for _, name := range names {
		if v.pod(name) == "" {
			hidden++
		} else {
			out = append(out, name)
		}
	}
	return out, hidden
}

// text returns a text that may name any pod: "" for a viewer from whom some are hidden.
func (v *viewer) text(s string) string {
	if !v.all {
		return ""
	}
	return s
}

// check asks whether the viewer may list the pods of a namespace, "" for all of them. What isn't known
// counts as hidden.
func (v *viewer) check(namespace string) bool {
	if v.user == nil {
		return false
	}
	key := right{v.id, namespace}
	if may, known := v.rights.remembered(key); known {
		return may
	}
	// Not remembered: the next request has questions left, and asks.
	if v.left == 0 {
		return false
	}
	v.left--
	decision, _, err := v.rights.authorizer.Authorize(v.ctx, authorizer.AttributesRecord{
		User: v.user, Verb: "list", APIVersion: "v1", Resource: "pods", Namespace: namespace, ResourceRequest: true,
	})
	// No opinion is no, as for the API server itself. A refusal that came with an error isn't remembered: the webhook may be
	// back in a second, and the viewer would see less for half a minute.
	may := decision == authorizer.DecisionAllow
	if may || err == nil {
		v.rights.remember(key, may)
	}
	return may
}

// identity returns what an authorizer can tell a user by, as one text. Extra values count: a webhook may decide by the
// scopes of a token, which is narrower than its user. Each part is quoted, so that no name can pass for two.
func identity(u user.Info) string {
	extra := u.GetExtra()
	id := strconv.AppendQuote(strconv.AppendQuote(nil, u.GetName()), u.GetUID())
	for _, group := range u.GetGroups() {
		id = strconv.AppendQuote(id, group)
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		id = strconv.AppendQuote(append(id, ' '), key)
		for _, value := range extra[key] {
			id = strconv.AppendQuote(id, value)
		}
	}
	return string(id)
}

// remembered returns a verdict that still holds.
func (r *Rights) remembered(key right) (may, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known := r.known[key]
	return v.may, known && r.now().Before(v.until)
}

// AllNamespaces reports whether whoever has sent a request may list the pods of all namespaces. It may ask the API server, once.
func (r *Rights) AllNamespaces(req *http.Request) bool { return r.viewer(req).all }

// remember keeps a verdict. It may be called by several requests about the same right: the last one counts.
func (r *Rights) remember(key right, may bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= knownRights {
		// All at once rather than the oldest: it happens after 8,192 users and namespaces, and costs one question for each that
		// is still asked about.
		clear(r.known)
	}
	holds := refusalHolds
	if may {
		holds = rightHolds
	}
	r.known[key] = verdict{may, r.now().Add(holds)}
}
