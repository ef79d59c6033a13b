package storm

import (
	"context"
	"time"
)

// draws says what of a step a misfortune goes by.
type draws int

const (
	nothing     draws = iota
	length            // Lasts
	connections       // Lasts, All and Share
)

// misfortune is something that may happen. There is one of each kind, and a plan has it as often as the
// seed draws it.
type misfortune struct {
	kind, what string
	draws      draws
	// resume is within what time placements have to resume, 0 when nothing says so.
	resume time.Duration
	// strike lets it happen and returns when it is over. from is when placements could have
	// gone on: when the API server is back, say, or when a leader died.
	strike func(ctx context.Context, r *run, s Step) (from time.Time, err error)
	// devices says that it is for storms with devices only.
	devices bool
}

// Limits of the numbers to reach: placements resume within 5 s of the API server's return, and
// within the Lease time of a leader's death, which a candidate finds to be over within a second or so.
const (
	afterReturn = 5 * time.Second
	afterDeath  = 16 * time.Second
)

// misfortunes returns all of them.
func misfortunes() []*misfortune {
	return []*misfortune{
		{"apiserver-kill", "the API server is killed and started again", length, afterReturn, killAPIServer, false},
		{"etcd-kill", "etcd is killed and started again", length, afterReturn, killEtcd, false},
		{"compaction", "etcd is compacted while no Berth watches; the API server starts anew, so watches end with 410", length, afterReturn, compact, false},
		{"names-again", "pods and nodes are deleted and created again under their names while no Berth watches, and watches end with 410", nothing, afterReturn, useNamesAgain, false},
		{"rejections", "the API server has no seat for Berth's requests: 429", length, afterReturn, reject, false},
		{"bind-refusals", "an admission policy refuses every bind", length, afterReturn, refuseBinds, false},
		{"delay", "packets are late", connections, 0, delay, false},
		{"cuts", "connections are cut, again and again", connections, 0, cutConnections, false},
		{"hang", "connections hang; what was sent arrives in the end", connections, 0, hang, false},
		{"black-hole", "connections lose everything that is sent", connections, 0, blackHole, false},
		{"leader-kill", "the leader is killed", nothing, afterDeath, killLeader, false},
		{"leader-stop", "the leader is stopped for longer than the Lease and goes on", nothing, afterDeath, stopLeader, false},
		{"leader-cut-off", "the leader alone is cut off from the API server for longer than the Lease", nothing, afterDeath, cutLeaderOff, false},
		{"both-kill", "the API server and the leader are killed at once", length, afterDeath, killBoth, false},
		{"provider-away", "no node group can be reached", length, 0, cutNodeGroupsOff, false},
		{"provider-mute", "the node groups hear and do what they are told, and no answer arrives", length, 0, loseAnswers, false},
		{"provider-late", "the answers of the node groups take 3 to 9 seconds; Berth waits for 5", length, 0, delayAnswers, false},
		{"client-certificates", "all Berths' certificates expire, and are rotated seconds later", length, 0, expireClientCertificates, false},
		{"serving-certificate", "the API server's certificate expires, and is rotated seconds later", length, afterReturn, expireServingCertificate, false},
		{"claim-refusals", "an admission policy refuses every write of a claim's status", length, afterReturn, refuseClaims, true},
		{"controllers-kill", "the controllers that make and free claims are killed and started again", length, 0, killControllers, true},
		{"driver-away", "the driver of the devices goes with what it has published, and comes back", length, 0, takeDriverAway, true},
	}
}

// find returns the misfortune of a kind, nil for none.
func find(kind string) *misfortune {
	for _, m := range misfortunes() {
		if m.kind == kind {
			return m
		}
	}
	return nil
}
