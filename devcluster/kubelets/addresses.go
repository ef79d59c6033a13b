package kubelets

import (
	"net/netip"
	"sync"
)

// addresses gives each object an IPv4 address of its own, counting up from a first one. No
// packet ever goes there: the API, its printers and the controllers of services want one.
type addresses struct {
	mu   sync.Mutex
	next netip.Addr
	used map[string]string // by the object's key
}

func newAddresses(before string) *addresses {
	return &addresses{next: netip.MustParseAddr(before), used: map[string]string{}}
}

// of returns the address of an object, the same one until it is released.
func (a *addresses) of(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.used[key]; ok {
		return ip
	}
	a.next = a.next.Next()
	a.used[key] = a.next.String()
	return a.used[key]
}

// release forgets an object that is gone. Its address isn't given to another.
func (a *addresses) release(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, key)
}
