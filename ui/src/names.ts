import { plural } from './format'
import { href } from './route'
import type { Attention, Decision, Group, Node, Owner, Pod } from './types'

// What states and kinds are called, and their tones: good, warn, bad, wait, or none.

export const toneOfSeverity: Record<string, string> = { critical: 'bad', warning: 'warn', info: 'info' }

export const states: Record<string, [text: string, tone: string]> = {
  Placed: ['placed', 'good'],
  Binding: ['being bound', 'good'],
  Gated: ['gated', 'wait'],
  Preempting: ['waits for its victims to leave', 'warn'],
  NodeComing: ['its node is coming', 'wait'],
  Nominated: ['waits for its nominated node', 'wait'],
  Untried: ['about to be tried', 'wait'],
  Rejected: ['no node takes it', 'bad'],
  Unmanaged: ['another scheduler’s', ''],
}

export const stateOf = (s: string): [string, string] => states[s] ?? [s, '']

/** nodeState says where a node stands, the most important first. */
export function nodeState(n: Pick<Node, 'ready' | 'unschedulable' | 'state' | 'step' | 'reason'>): [text: string, tone: string] {
  if (n.state === 'Leaving') return [n.step ? `leaving: ${n.step}` : 'leaving', 'warn']
  if (!n.ready) return ['not ready', 'bad']
  if (n.unschedulable) return ['cordoned', 'warn']
  if (n.state === 'Candidate') return ['could go', 'wait']
  if (n.state === 'Stays') return [stays(n.reason), n.reason === 'NotUnderutilized' ? 'good' : '']
  return ['ready', 'good']
}

const keeps: Record<string, string> = {
  NotAutoscaled: 'in no node group', ScaleDownDisabledAnnotation: 'kept by its annotation', NodeGroupRollingOut: 'its group is rolling out',
  CurrentlyBeingDeleted: 'on its way out', AboutToBeInterrupted: 'about to be interrupted', NotUnderutilized: 'in use', IsReplacement: 'replaces other nodes',
  NodeGroupMinSizeReached: 'group at its minimum', MinimalResourceLimitExceeded: 'cluster at its minimum', PodIsToCome: 'a pod is to come',
  IsDestination: 'takes others’ pods', NoPlaceToMovePods: 'a pod fits nowhere else', BlockedByPod: 'kept by a pod', AtomicScaleDownFailed: 'group goes whole or not',
  NotSimulated: 'not looked at yet', DisplacedPods: 'displaced pods lack room', ClusterUnhealthy: 'cluster is unhealthy', TaintedBySomebodyElse: 'tainted by others',
}

/** stays says why a node stays. */
export const stays = (reason: string | undefined): string => (reason ? keeps[reason] ?? words(reason) : 'stays')

/** keeper says why a pod keeps its node. */
export const keeper = (reason: string): string => ({ BlockedByPod: 'must not be evicted', NoPlaceToMovePods: 'fits on no other node', BlockedByOnCompletionPod: 'has to end by itself', PodIsToCome: 'is to come to it' } as Record<string, string>)[reason] ?? stays(reason)

/** kinds are the kinds of nodes that can be asked for, with what they are called. */
export const kinds: [string, string][] = [['', 'all'], ['ready', 'ready'], ['notReady', 'not ready'], ['cordoned', 'cordoned'], ['candidate', 'could go'], ['leaving', 'leaving']]

/** kindOf says which of kinds a node is, the most important first. */
export const kindOf = (n: Node): string => (n.state === 'Leaving' ? 'leaving' : !n.ready ? 'notReady' : n.unschedulable ? 'cordoned' : n.state === 'Candidate' ? 'candidate' : 'ready')

/** words splits a name such as "NotEnoughRoom" into words. */
export const words = (s: string): string => s.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()

export const owner = (o: Owner | undefined): string => (o ? `${o.kind} ${o.name}` : 'no controller')

/** reasonOf says what a pod in a state waits for: of a node that is coming, the reason is the name of its group. */
export const reasonOf = (state: string, reason: string | undefined): string => (state === 'NodeComing' && reason ? `of node group ${reason}` : reason ?? '')

/** stateOfMany is stateOf of so many pods. */
export function stateOfMany(s: string, pods: number): [string, string] {
  const [text, tone] = stateOf(s)
  return [pods === 1 ? text : ({ Preempting: 'wait for their victims to leave', NodeComing: 'their nodes are coming', Nominated: 'wait for their nominated nodes', Rejected: 'no node takes them' } as Record<string, string>)[s] ?? text, tone]
}

export const podName = (p: Pick<Pod, 'namespace' | 'name'>): string => `${p.namespace}/${p.name}`

export function decisionTone(kind: string): string {
  if (/^(Placed|Bound|ScaledUp|Bought)/.test(kind)) return 'good'
  if (/(Failed|GivenUp|Rejected|NotScaledUp|BackedOff|TimedOut|Unanswered)/.test(kind)) return 'bad'
  if (/(Preempt|Evict|Remov|Drain|ScaledDown|Delet|Consolidat)/.test(kind)) return 'warn'
  return 'wait'
}

/** about is what a decision is about, for its row. */
export const about = (d: Decision): string =>
  d.hidden ? 'hidden' : d.podGroup ?? (d.kind.startsWith('Node') ? d.node ?? d.pod : d.pod ?? d.node) ?? d.group ?? d.headroom ?? ''

/** said are decisions as sentences, with the fields that stand in braces. A kind without one is written as its words. */
const said: Record<string, string> = {
  Placed: '{pod} is placed on {node}', Expected: '{pod} is expected on {node}', Waits: '{pod} finds no node', Failed: 'the attempt to place {pod} failed',
  Weighed: '{pod} waits for a node instead of preempting', Preempts: '{victims} must leave {node} for {pod}', Gated: '{pod} is gated',
  Permitting: '{pod} waits for permission to be bound to {node}', Permitted: '{pod} may be bound', Unplaced: '{pod} is off {node} again',
  GroupPlaced: 'pod group {podGroup} is placed', GroupWaits: 'pod group {podGroup} waits', GroupPlanned: 'pod group {podGroup} has places on nodes to come', GroupNotPlanned: 'no nodes are bought for pod group {podGroup}',
  ScaledUp: '{nodes} of group {group} ordered', NotScaledUp: 'no node group would help {pod}', ScaleUpFailed: 'the order for group {group} failed', ScaleUpUnanswered: 'the order for group {group} had no answer',
  NodeTainted: '{node} begins to leave', NodeUnneeded: '{node} could go', NodeNeeded: '{node} is needed again', NodeStays: '{node} stays', NodeKept: '{node} could not be deleted and stays', NodeRecalled: '{node} is kept after all', NodeRemoved: '{node} is deleted',
  RoomKept: 'room is kept for pod group {podGroup}', PodEvicted: '{pod} is asked to leave {node}', PodSurged: '{pod} gets its successor before it leaves {node}', NodeInterrupted: '{node} is about to be interrupted',
}

/** sentence is a decision in one line. */
export function sentence(d: Decision): string {
  const has = { pod: d.pod, node: d.node, group: d.group, podGroup: d.podGroup, victims: d.victims?.join(', '), nodes: d.nodes ? plural(d.nodes, 'node') : undefined }
  let whole = !d.hidden && said[d.kind] !== undefined
  const out = said[d.kind]?.replace(/{(\w+)}/g, (_, name: keyof typeof has) => has[name] ?? ((whole = false), ''))
  const kind = words(d.kind)
  if (!whole) return d.text ? d.text.replace(d.kind, kind) : [kind, about(d)].filter(Boolean).join(' ')
  const [, code, detail] = /^([A-Z][A-Za-z]+): (.*)$/s.exec(d.reason ?? '') ?? []
  if (d.kind === 'NodeStays' && code) return `${out}, ${d.pod && code === 'BlockedByPod' ? `kept by ${d.pod}` : stays(code)}: ${detail}`
  return [out, d.reason?.replace(/(\d+)->(\d+)/g, 'from $1 to $2').replace(/(\d{4}-\d\d-\d\d)T([\d:]+)Z/g, '$1 $2 UTC')].filter(Boolean).join(': ')
}

/** attentionHref is the page that shows what an entry is about. */
export function attentionHref(a: Attention): string {
  if (a.node) return href('nodes', { node: a.node })
  if (a.pod) return href('pending', { pod: a.pod })
  if (a.group) return href('groups', { g: a.group })
  return href(a.kind.startsWith('Pods') ? 'pending' : a.kind.startsWith('Nodes') ? 'nodes' : 'groups')
}

/** groupOutcome says where a pod group stands. */
export const groupOutcome = (outcome: string | undefined): [text: string, tone: string] =>
  ({ Placed: ['placed', 'good'], Fits: ['would fit now', 'wait'], Waits: ['waits', 'bad'], Gated: ['gated', 'wait'] } as Record<string, [string, string]>)[outcome ?? ''] ?? [outcome || 'without members', '']

/** groupState says where a node group stands. */
export function groupState(g: Group): [text: string, tone: string] {
  if (g.templateError) return ['template error', 'bad']
  if (g.backoff) return ['backs off', 'warn']
  if (g.launching > 0) return [`${g.launching} launching`, 'wait']
  if (g.limit) return [g.limit, 'warn']
  return ['ready to grow', 'good']
}
