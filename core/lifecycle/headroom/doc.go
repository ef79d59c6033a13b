// Package headroom keeps room free on the nodes for certain pods: for those of a
// CapacityBuffer, as long as it exists, and for those of a ProvisioningRequest, for the time
// of its booking. What keeps the room is a stand-in for each pod: a pod in no API that is
// queued, placed and planned for like any other, but nominated where others are bound
// (cluster.Headroom). Nothing is ever written about it but the status of the object that
// asks for it.
//
// A stand-in:
//
//	state    is                            waits for                             then
//	waiting  in the queue                  a node with room                      held
//	held     nominated to a node, in the   its node goes, or doesn't take it     waiting, tried at once
//	         state only                    any more: others took the room,
//	                                       those among them whom it is for
//	any      –                             the headroom needs fewer, or ends;    dropped
//	                                       of a booking: a pod of it was placed,
//	                                       or finds no node either, and waits in
//	                                       its stead, with its place
//
// A CapacityBuffer:
//
//	state     is                             waits for                       then
//	refused   what a chunk is, or how many   the buffer, its template or     kept
//	          there are, can't be made out   its scalable to change
//	kept      as many stand-ins as chunks    the same                        kept, with more, fewer or others; refused
//	any       –                              it is deleted                   ended
//
// A buffer's room is kept whoever uses it: a pod that takes the room of a stand-in has this
// one look for room elsewhere, and nodes be bought for it.
//
// A ProvisioningRequest. Its state follows from its conditions, so that it outlives the
// process:
//
//	state    conditions                     waits for                         then
//	open     none, or Provisioned=False     its templates; 1 to 10 minutes    booked: Provisioned=True; no room: drafted
//	                                        since the last attempt            if it is atomic, otherwise open again, or, not
//	                                                                          to be retried, ended: Failed=True
//	drafted  the same                       a plan that buys nodes for all    booked; no such plan: open again
//	                                        of its pods
//	                                        7 days since it was created       ended: Failed=True
//	booked   Provisioned=True               10 minutes since                  ended: BookingExpired=True
//	                                        all of its pods are placed        the same, and nothing is kept meanwhile
//	ended    Failed or BookingExpired=True  –                                 –
//
// A status that is to be written, and isn't yet, counts as written here; a write that fails
// is tried again after retryAfter.
package headroom
