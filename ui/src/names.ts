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
  if (n.state === 'Stays') return [n.reason ? `stays: ${words(n.reason)}` : 'stays', 'good']
  return ['ready', 'good']
}

/** kinds are the kinds of nodes that can be asked for, with what they are called. */
export const kinds: [string, string][] = [['', 'all'], ['ready', 'ready'], ['notReady', 'not ready'], ['cordoned', 'cordoned'], ['candidate', 'could go'], ['leaving', 'leaving']]

/** kindOf says which of kinds a node is, the most important first. */
export const kindOf = (n: Node): string => (n.state === 'Leaving' ? 'leaving' : !n.ready ? 'notReady' : n.unschedulable ? 'cordoned' : n.state === 'Candidate' ? 'candidate' : 'ready')

/** words splits a name such as "NotEnoughRoom" into words. */
export const words = (s: string): string => s.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()

export const owner = (o: Owner | undefined): string => (o ? `${o.kind} ${o.name}` : 'no controller')

/** reasonOf says what a pod in a state waits for: of a node that is coming, the reason is the name of its group. */
export const reasonOf = (state: string, reason: string | undefined): string => (state === 'NodeComing' && reason ? `of node group ${reason}` : reason ?? '')

export const podName = (p: Pick<Pod, 'namespace' | 'name'>): string => `${p.namespace}/${p.name}`

export function decisionTone(kind: string): string {
  if (/^(Placed|Bound|ScaledUp|Bought)/.test(kind)) return 'good'
  if (/(Failed|GivenUp|Rejected|Waits|NotScaledUp|BackedOff|TimedOut|Unanswered)/.test(kind)) return 'bad'
  if (/(Preempt|Evict|Remov|Drain|ScaledDown|Delet|Consolidat)/.test(kind)) return 'warn'
  return 'wait'
}

/** about is what a decision is about, for its row. */
export const about = (d: Decision): string =>
  d.hidden ? 'hidden' : d.podGroup ?? d.pod ?? d.node ?? d.group ?? d.headroom ?? ''

/** sentence is a decision in one line. */
export const sentence = (d: Decision): string => d.text || [d.kind, about(d)].filter(Boolean).join(' ')

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
  if (g.backoff) return ['backs off', 'bad']
  if (g.launching > 0) return [`${g.launching} launching`, 'wait']
  if (g.limit) return [g.limit, 'warn']
  return ['ready to grow', 'good']
}
