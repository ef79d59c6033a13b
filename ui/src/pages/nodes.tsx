import { useMemo } from 'preact/hooks'
import { clockNow, currency, prices, useAnswer, usePages } from '../api'
import { age, amount, clock, count, money, plural, quantity } from '../format'
import { kindOf, kinds, nodeState, podName, stateOf } from '../names'
import { Age, Command, Empty, Left, Meter, Nothing, Pairs, Panel, PlainTable, Segments, Tag } from '../parts/basics'
import { Drawer } from '../parts/drawer'
import { Table, type Column } from '../parts/table'
import { go, href, param } from '../route'
import { utc } from '../settings'
import type { Node, NodeDetail, NodeList } from '../types'
import { MapChoices, NodeMap } from './map'
import { DecisionLines } from './pod'

type View = 'table' | 'map'

const share = (n: Node, resource: string): number => n.resources.find(r => r.resource === resource)?.share ?? NaN
/** extended are the extended resources that a node has, such as GPUs of a device plugin; devices of claims aren't among them. */
const extended = (n: Node) => n.resources.filter(r => r.resource.includes('/') && quantity(r.allocatable) > 0)
const extendedShare = (n: Node): number => Math.max(...extended(n).map(r => r.share), -1)

/** meter is the width of a bar with its percentage. */
const meter = 'minmax(8.6em, .4fr)'

/** columns are those of the table. resources are the extended resources that nodes have. */
function columns(resources: string[], prices: boolean): Column<Node>[] {
  const out: Column<Node>[] = [
    { key: 'name', label: 'node', show: n => n.name, by: n => n.name, width: 'minmax(160px, 1.4fr)' },
    { key: 'state', label: 'state', show: n => { const [t, tone] = nodeState(n); return <Tag tone={tone} title={n.pod ? `${t}: ${n.pod}` : t}>{t}</Tag> }, by: n => nodeState(n)[0], width: 'minmax(175px, 1fr)' },
    { key: 'group', label: 'group', show: n => n.group ?? '', by: n => n.group ?? '' },
    { key: 'type', label: 'type', show: n => [n.instanceType, n.capacityType].filter(Boolean).join(' '), by: n => n.instanceType ?? '' },
    { key: 'zone', label: 'zone', show: n => n.zone ?? '', by: n => n.zone ?? '' },
    { key: 'cpu', label: 'cpu', show: n => <Meter share={share(n, 'cpu')} tone="cpu" of={of(n, 'cpu')} />, by: n => share(n, 'cpu'), num: true, width: meter },
    { key: 'memory', label: 'memory', show: n => <Meter share={share(n, 'memory')} tone="memory" of={of(n, 'memory')} />, by: n => share(n, 'memory'), num: true, width: meter },
  ]
  if (resources.length > 0)
    out.push({ key: 'gpu', label: resources.length === 1 ? resources[0]!.replace(/^.*\//, '') : 'extended', hint: `${resources.join(', ')}; devices that claims allocate are on the page Devices`, show: n => { const e = extended(n)[0]; return e ? <Meter share={e.share} tone="gpu" of={of(n, e.resource)} /> : '' }, by: extendedShare, num: true, width: meter })
  out.push({ key: 'pods', label: 'pods', num: true, show: n => count(n.pods), by: n => n.pods })
  if (prices) out.push({ key: 'price', label: 'price', num: true, show: n => (n.price ? money(n.price, currency.value) : '–'), by: n => n.price ?? NaN })
  out.push(
    { key: 'age', label: 'age', num: true, show: n => <Age of={n.created} />, by: n => (n.created ? -Date.parse(n.created) : NaN) },
  )
  return out
}

const of = (n: Node, resource: string): string => {
  const r = n.resources.find(x => x.resource === resource)
  return r ? `${amount(resource, r.requested)} of ${amount(resource, r.allocatable)} ${resource}` : ''
}

/** NodesPage is all nodes, as a table or as a map. */
export function NodesPage() {
  const { data, error } = usePages<Node, NodeList>('nodes', n => n.name, {}, 5000)
  const view = (param('view') || 'table') as View
  const q = param('q').toLowerCase(), group = param('group'), state = param('state')
  const items = data?.items
  const groups = useMemo(() => [...new Set(items?.map(n => n.group ?? '') ?? [])].sort(), [items])
  const rows = useMemo(() => (items ?? []).filter(n =>
    (!q || [n.name, n.group, n.zone, n.instanceType, n.reason, n.pod].join(' ').toLowerCase().includes(q)) && (!group || (n.group || '-') === group) && (!state || kindOf(n) === state)), [items, q, group, state])
  const resources = useMemo(() => [...new Set((items ?? []).flatMap(n => extended(n).map(r => r.resource)))].sort().join(' '), [items])
  const cols = useMemo(() => columns(resources.split(' ').filter(Boolean), prices.value), [resources, prices.value])
  if (error && !data) return <p class="bad">{error}</p>
  if (!data || !items) return <p class="loading">Loading…</p>
  const choose = (name: string) => go({ node: name })
  return (
    <Panel bare>
      <div class="body controls">
        <Segments<View> label="View" of={[['table', 'Table'], ['map', 'Map']]} value={view} set={v => go({ view: v === 'table' ? undefined : v })} />
        <input type="search" placeholder="Filter by name, type, zone, reason" aria-label="Filter nodes" value={param('q')} onInput={e => go({ q: e.currentTarget.value }, true)} />
        <label>Group <select value={group} onChange={e => go({ group: e.currentTarget.value }, true)}><option value="">all</option>{groups.map(g => <option value={g || '-'}>{g || 'in none'}</option>)}</select></label>
        <label>State <select value={state} onChange={e => go({ state: e.currentTarget.value }, true)}>{kinds.map(([k, text]) => <option value={k}>{text}</option>)}</select></label>
        {view === 'map' && <MapChoices />}
        <span class="soft">{count(rows.length)} of {plural(data.total, 'node')}</span><Left of={data} />
      </div>
      {items.length === 0 ? <Empty title="There is no node">Nodes appear here as they join the cluster.</Empty>
        : view === 'map' ? rows.length === 0 ? <Nothing /> : <NodeMap nodes={rows} choose={choose} />
          : <Table label="Nodes" columns={cols} rows={rows} id={n => n.name} first="name" selected={param('node')} open={n => choose(n.name)} />}
    </Panel>
  )
}

/** NodeDrawer is why a node stays, or how far it is on its way out. */
export function NodeDrawer() {
  const name = param('node')
  const { data: n, error } = useAnswer<NodeDetail>(name ? `nodes/${name}` : undefined, {}, { every: 4000 })
  if (!name) return null
  return <Drawer title={name} close={() => go({ node: undefined })}>{error && <p class="bad">{error}</p>}{n ? <Detail of={n} /> : !error && <p class="loading">Loading…</p>}</Drawer>
}

function Detail({ of: n }: { of: NodeDetail }) {
  const t = clockNow.value, at = (x?: string) => clock(x, utc.value === 'true', t)
  const [text, tone] = nodeState(n)
  return (
    <>
      <section>
        <p><Tag tone={tone}>{text}</Tag> {n.pod && <><a href={href('nodes', { pod: n.pod })}>{n.pod}</a>{n.detail && ': '}</>}{n.detail}</p>
        <Pairs of={[
          ['group', n.group && <a href={href('groups', { g: n.group })}>{n.group}</a>], ['type', [n.instanceType, n.capacityType].filter(Boolean).join(', ')], ['architecture', n.arch],
          ['zone', n.zone], ['price', n.price ? money(n.price, currency.value) : ''], ['created', n.created && `${at(n.created)} (${age(n.created, t)} ago)`],
          ['pods', n.maxPods ? `${count(n.pods)} of ${count(n.maxPods)}` : count(n.pods)],
          [`${text} since`, n.since && at(n.since)], ['can go', n.due && at(n.due)], ['last looked at', n.looked && at(n.looked)],
          ['waits for', n.waitsFor?.join(', ')], ['awaits', n.awaits?.join(', ')],
          ['taints', n.taints?.map(x => `${x.key}${x.value ? '=' + x.value : ''}:${x.effect}`).join(', ')],
        ]} />
      </section>
      <section><h3>Requested</h3><PlainTable caption="Requested" head={['resource', 'requested', 'of', 'share']} nums={[1, 2]}
        rows={n.resources.map(r => [r.resource, amount(r.resource, r.requested), amount(r.resource, r.allocatable), <Meter share={r.share} tone={r.resource === 'memory' ? 'memory' : r.resource === 'cpu' ? 'cpu' : 'gpu'} />])} /></section>
      {n.leaving && <section><h3>On its way out</h3><p>{n.leaving.step}{n.leaving.why && `: ${n.leaving.why}`}</p></section>}
      {n.changes && n.changes.length > 0 && <section><h3>What would let it go</h3><ul class="items">{n.changes.map(c => <li><span class="what">{c}</span></li>)}</ul></section>}
      {n.blocks && n.blocks.length > 0 && <section><h3>Pods that keep it</h3><ul class="items">{n.blocks.map(b => <li><span class="what"><a href={href('pending', { pod: b.pod })}>{b.pod}</a> {b.why} <Tag>{b.rule}</Tag>{b.change && <div class="soft">{b.change}</div>}</span></li>)}</ul></section>}
      {n.moves && n.moves.length > 0 && <section><h3>Where its pods would go</h3><PlainTable caption="Where its pods would go" head={['pod', 'to']}
        rows={n.moves.map(m => [m.pod, m.node ? <a href={href('nodes', { node: m.node })}>{m.node}</a> : <span class="bad">{m.why ?? 'nowhere'}</span>])} /></section>}
      <section><h3>Pods on it</h3>{n.onNode.length === 0 ? <p class="soft">None.</p> : <PlainTable caption="Pods on it" head={['pod', 'state', 'requests']}
        rows={n.onNode.map(p => [<a href={href('nodes', { pod: podName(p) })}>{podName(p)}</a>, stateOf(p.state)[0], p.requests?.map(r => `${r.resource} ${amount(r.resource, r.quantity)}`).join(', ')])} />}
        {(n.hidden ?? 0) > 0 && <p class="soft">and {plural(n.hidden!, 'pod')} of namespaces that you may not read</p>}</section>
      <section><h3>Last decisions</h3><DecisionLines of={n.decisions} /></section>
      {n.labels && <details class="twin"><summary>{plural(Object.keys(n.labels).length, 'label')}</summary><Pairs of={Object.entries(n.labels).map(([k, v]) => [k, <code>{v}</code>])} /></details>}
      <section><h3>On a terminal</h3><Command line={`kubectl berth explain node ${n.name}`} /></section>
    </>
  )
}

