// Generated from the schema of the API. DO NOT EDIT.

export interface DecisionList {
  at: string
  epoch: string
  first: number
  last: number
  items: Decision[]
  more?: boolean
}

export interface Decision {
  seq: number
  time: string
  kind: string
  text?: string
  pod?: string
  node?: string
  group?: string
  nodes?: number
  podGroup?: string
  members?: number
  reason?: string
  profile?: string
  victims?: string[]
  score?: number
  scores?: PluginScore[]
  runnerUp?: RunnerUp
  rejections?: Rejection[]
  choice?: Choice
  headroom?: string
  hidden?: boolean
}

export interface PluginScore {
  plugin: string
  score: number
}

export interface RunnerUp {
  node: string
  score: number
}

export interface Run extends Decision {
  more?: number
}

export interface StreamedDecisions {
  items: Decision[]
  dropped?: number
  reset?: boolean
}

export interface GroupList extends List {
  items: Group[]
}

export interface Group {
  name: string
  min: number
  max: number
  target: number
  ready: number
  launching: number
  deleting: number
  removable: number
  price?: number
  total?: number
  capacity?: Amount[]
  room: number
  limit?: string
  nextLimit?: string
  templateError?: string
  maxOrder?: number
  backoff?: Backoff
  next?: Expectation
  launches?: LaunchTimes
  launchControl?: string[]
  ordered?: Order
  failed?: Failure
}

export interface GroupDetail extends Group {
  at: string
  instances?: Instance[]
  decisions: Decision[]
}

export interface Instance {
  id: string
  node?: string
  state: string
  since: string
}

export interface LaunchTimes {
  launches: number
  p50: string
  p90: string
}

export interface Failure {
  at: string
  nodes?: number
  why: string
}

export interface Order {
  group: string
  at: string
  from: number
  to: number
  wanted: number
  pods: number
  choice?: Choice
  failed?: string
}

export interface Choice {
  plan: number
  by?: string
  options?: Option[]
  unpriced?: boolean
  nodes?: number
  price?: number
  next?: Alternative
  dearest?: Alternative
}

export interface Alternative {
  group: string
  nodes: number
  price: number
}

export interface Option {
  group: string
  with?: string[]
  nodes: number
  pods: number
  unused: number
  price?: number
  chosen?: boolean
}

export interface Meta {
  at: string
  version: string
  revision?: string
  goVersion?: string
  rules?: string
  mode: string
  file?: string
  fileKind?: string
  leading: boolean
  identity?: string
  leader?: string
  epoch: string
  since: string
  from?: string
  now: string
  profiles: string[]
  provider?: string
  currency?: string
  tick: string
  capabilities: Capabilities
  viewer: Viewer
  flags?: Record<string, string>
}

export interface Capabilities {
  autoscaling: boolean
  prices: boolean
  shadow: boolean
  whatIf: boolean
  replay: boolean
  podGroups: boolean
  devices: boolean
}

export interface Viewer {
  name?: string
  allNamespaces: boolean
}

export interface MoneySum {
  price: number
  removable: number
  leaving: number
  launching: number
  unpriced?: number
}

export interface Money extends MoneySum {
  at: string
  groups: MoneyOfGroup[]
  reasons: NodesOfReason[]
  blockers: Blocker[]
  hiddenBlockers?: number
  bought?: Bought
}

export interface MoneyOfGroup {
  group: string
  nodes: number
  price: number
  nodePrice?: number
  removable?: number
  leaving?: number
}

export interface Blocker {
  pod: string
  node: string
  group?: string
  reason: string
  price?: number
}

export interface Bought {
  since: string
  orders: number
  chosen: number
  next: number
  dearest: number
}

export interface NodeList extends List {
  items: Node[]
}

export interface Node {
  name: string
  group?: string
  instanceType?: string
  zone?: string
  capacityType?: string
  arch?: string
  created?: string
  ready: boolean
  unschedulable?: boolean
  price?: number
  state?: string
  reason?: string
  pod?: string
  step?: string
  pods: number
  maxPods?: number
  resources: ResourceUse[]
}

export interface NodeDetail extends Node {
  at: string
  labels?: Record<string, string>
  taints?: Taint[]
  detail?: string
  utilization?: number
  since?: string
  looked?: string
  due?: string
  planned?: string
  changes?: string[]
  leaving?: Leaving
  blocks?: Block[]
  moves?: Move[]
  waitsFor?: string[]
  awaits?: string[]
  onNode: Pod[]
  hidden?: number
  decisions: Decision[]
}

export interface Taint {
  key: string
  value?: string
  effect: string
}

export interface Block {
  pod: string
  rule: string
  why: string
  change: string
}

export interface Move {
  pod: string
  node?: string
  why?: string
}

export interface Overview {
  at: string
  seq: number
  pods: PodCounts
  pending: PendingReason[]
  nodes: NodeCounts
  utilization: ResourceUse[]
  money?: MoneySum
  attention: Attention[]
  buying?: Buying[]
  draining?: Draining[]
  preempting?: Preempting[]
  backingOff?: BackingOff[]
  coolingDown?: CoolingDown[]
  scaleDown?: ScaleDown
  activity: Run[]
}

export interface PodCounts {
  placed: number
  pending: number
  ours: number
  oldest?: string
}

export interface PendingReason {
  state: string
  reason?: string
  plugin?: string
  pods: number
  example?: string
  since?: string
}

export interface NodeCounts {
  total: number
  ready: number
  notReady: number
  unschedulable: number
  target?: number
  launching?: number
  removable?: number
  leaving?: number
}

export interface Attention {
  severity: string
  kind: string
  message: string
  count?: number
  pod?: string
  node?: string
  group?: string
  since?: string
  until?: string
  price?: number
}

export interface Expectation {
  ordered?: string
  likely?: string
  late?: string
  launches?: number
  givenUp?: string
}

export interface Buying {
  group: string
  nodes: number
  pods: number
  price?: number
  next?: Expectation
}

export interface Draining extends Leaving {
  node: string
  group?: string
  price?: number
  pods: number
}

export interface Leaving {
  step: string
  why?: string
  next?: string
}

export interface Preempting {
  pod: string
  node?: string
  victims?: string[]
  count: number
}

export interface BackingOff extends Backoff {
  group: string
}

export interface Backoff {
  class: string
  reason: string
  until: string
}

export interface CoolingDown {
  group: string
  nodes: number
  until: string
  why: string
}

export interface ScaleDown {
  status: string
  why?: string
  planned?: string
  reasons: NodesOfReason[]
}

export interface NodesOfReason {
  state: string
  reason?: string
  nodes: number
  price?: number
  node?: string
  pod?: string
}

export interface PodGroupList extends List {
  items: PodGroup[]
}

export interface PodGroup {
  namespace: string
  name: string
  created?: string
  policy?: string
  minCount?: number
  topology?: string
  placed: number
  pending: number
  gated: number
  queue?: string
  attempts?: number
  message?: string
}

export interface DeviceList extends List {
  items: DevicePool[]
  claims: DeviceClaim[]
}

export interface DevicePool {
  driver: string
  pool: string
  node?: string
  devices: number
  allocated: number
}

export interface DeviceClaim {
  namespace: string
  name: string
  allocated: boolean
  devices?: string[]
  pods?: string[]
}

export interface PodList extends List {
  items: Pod[]
}

export interface Pod {
  namespace: string
  name: string
  created?: string
  owner?: Owner
  node?: string
  state: string
  reason?: string
  plugin?: string
  since?: string
  attempts?: number
  group?: string
  expected?: Expectation
  podGroup?: string
  priority?: number
  scheduler?: string
  requests?: Amount[]
}

export interface Pending {
  at: string
  pods: number
  reasons: PendingByReason[]
}

export interface PendingByReason extends PendingReason {
  workloads: PendingWorkload[]
  otherPods?: number
  hidden?: number
  next?: Expectation
}

export interface PendingWorkload {
  namespace: string
  owner?: Owner
  pods: number
  example: string
  since?: string
}

export interface PodDetail extends Pod {
  at: string
  outcome?: string
  message?: string
  queue?: string
  queued?: string
  tried?: string
  backoff?: string
  nominated?: string
  victims?: string[]
  preemption?: string
  permissions?: Permission[]
  rejections?: Rejection[]
  helps?: Help[]
  matrix?: ScoreMatrix
  scaling?: Scaling
  timeline: TimelineEntry[]
  decisions: Decision[]
  hidden?: number
}

export interface Permission {
  plugin: string
  until: string
}

export interface Rejection {
  plugin: string
  message: string
  nodes: number
  short?: Shortfall
}

export interface Shortfall {
  resource: string
  needed: string
  available: string
  node?: string
}

export interface Help {
  kind: string
  plugin?: string
  nodes?: number
  text: string
}

export interface ScoreMatrix {
  nodes: string[]
  chosen: number
  totals: number[]
  rows: ScoreRow[]
}

export interface ScoreRow {
  plugin: string
  scores: number[]
}

export interface Scaling {
  notPlanned?: string
  nextPlan?: string
  event?: string
  ordered?: Order
  coming?: ComingNode
  weighed?: string
  groups?: GroupAnswer[]
}

export interface ComingNode extends Expectation {
  group: string
  node?: string
  reserved?: boolean
  stays?: boolean
}

export interface GroupAnswer {
  group: string
  answer: string
  reasons?: string[]
  plugin?: string
  missing?: Shortfall[]
  detail?: string
}

export interface TimelineEntry {
  at: string
  kind: string
  text?: string
  seq?: number
}

export interface Series {
  at: string
  from: string
  step: string
  points: number
  lines: Line[]
}

export interface Line {
  name: string
  unit: string
  values: (number | null)[]
}

export interface Shadow {
  at: string
  since?: string
  until?: string
  compared: number
  agreement: number
  allowed: number
  verdicts: VerdictCount[]
  short: number
  overtaken: number
  judgedAgain: number
  waiting: number
  doubted: number
  earlier: ShadowEarlier
  other: ShadowTimes
  berth: ShadowTimes
  differences: ShadowDifference[]
  hidden?: number
  nodes?: ShadowNodes
}

export interface VerdictCount {
  verdict: string
  count: number
}

export interface ShadowEarlier {
  decided: number
  noNode: number
  notYet: number
  same: number
  equal: number
  better: number
  worse: number
  noMore: number
}

export interface ShadowTimes {
  p50: string
  p90: string
  p99: string
}

export interface ShadowDifference {
  time: string
  pod: string
  verdict: string
  node?: string
  score?: number
  berthNode?: string
  berthScore?: number
  plugin?: string
  reason?: string
  scores?: PluginScore[]
  berthScores?: PluginScore[]
}

export interface ShadowNodes {
  since?: string
  verdicts: VerdictCount[]
  buying: number
  removing: number
  boughtAhead: string
  removedAhead: string
  cluster: ShadowHours
  berth: ShadowHours
  unpriced?: string[]
  differences: ShadowNodeDifference[]
}

export interface ShadowHours {
  hours: number
  cost: number
}

export interface ShadowNodeDifference {
  time: string
  verdict: string
  group: string
  nodes: number
  node?: string
  price?: number
  wished?: string
  reason?: string
}

export interface Error {
  error: string
}

export interface List {
  at: string
  total: number
  hidden?: number
  continue?: string
}

export interface ResourceUse {
  resource: string
  requested: string
  allocatable: string
  share: number
}

export interface Amount {
  resource: string
  quantity: string
}

export interface Owner {
  kind: string
  name: string
}

export interface WhatIf {
  at: string
  removed?: string[]
  pods?: number
  like?: string
  placed: number
  left: number
  moves?: Move[]
  hidden?: number
  nodes?: WhatIfNode[]
  why?: string
  saves?: number
}

export interface WhatIfNode {
  node: string
  pods: number
}
