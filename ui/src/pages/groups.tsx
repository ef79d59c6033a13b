import { clockNow, currency, prices, useAnswer } from '../api'
import { age, amount, clock, count, money, plural, span, seconds } from '../format'
import { groupState } from '../names'
import { Command, Empty, Pairs, Panel, PlainTable, Tag } from '../parts/basics'
import { Drawer } from '../parts/drawer'
import { Table, type Column } from '../parts/table'
import { go, href, param } from '../route'
import { utc } from '../settings'
import type { Group, GroupDetail, GroupList } from '../types'
import { expected } from './now'
import { DecisionLines, Options } from './pod'

/** Span draws where a group stands between its minimum and its maximum: ready, launching, leaving. */
function Span({ of: g }: { of: Group }) {
  const top = Math.max(g.max, g.target, 1)
  const x = (n: number) => (n / top) * 100
  const other = Math.max(0, g.target - g.ready - g.launching - g.deleting)
  const parts: [number, string][] = [[g.ready, 'good-fill'], [other, 'bad-fill'], [g.deleting, 'warn-fill'], [g.launching, '']]
  let from = 0
  return (
    <span class="meter" title={`${g.ready} ready, ${g.launching} launching, ${g.deleting} leaving, ${other} not ready; from ${g.min} to ${g.max}`}>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        {parts.map(([n, tone]) => { const r = <rect x={x(from)} width={x(n)} height="10" fill={tone ? `var(--${tone})` : 'url(#launching)'} />; from += n; return r })}
        {g.min > 0 && <rect x={x(g.min) - 0.4} width="0.8" height="10" fill="var(--text)" />}
      </svg>
    </span>
  )
}

const columns = (): Column<Group>[] => [
  { key: 'name', label: 'group', show: g => g.name, by: g => g.name, width: 'minmax(140px, 1.3fr)' },
  { key: 'state', label: 'state', show: g => { const [t, tone] = groupState(g); return <Tag tone={tone} title={g.backoff?.reason ?? g.templateError}>{t}</Tag> }, by: g => groupState(g)[0], width: 'minmax(125px, 1fr)' },
  { key: 'span', label: 'min – max', show: g => <Span of={g} />, by: g => g.target, width: 'minmax(120px, 1.4fr)' },
  { key: 'min', label: 'min', num: true, show: g => count(g.min), by: g => g.min },
  { key: 'target', label: 'target', num: true, show: g => count(g.target), by: g => g.target },
  { key: 'max', label: 'max', num: true, show: g => count(g.max), by: g => g.max },
  { key: 'launching', label: 'launching', num: true, show: g => count(g.launching), by: g => g.launching },
  { key: 'removable', label: 'could go', num: true, show: g => count(g.removable), by: g => g.removable },
  { key: 'capacity', label: 'a node has', show: g => [...g.capacity ?? []].sort((a, b) => Number(b.resource.includes('/')) - Number(a.resource.includes('/'))).filter(c => c.resource === 'cpu' || c.resource === 'memory' || c.resource.includes('/')).map(c => `${amount(c.resource, c.quantity)} ${short(c.resource)}`).join(', '), width: 'minmax(200px, 1.4fr)' },
  ...(prices.value ? [
    { key: 'price', label: 'a node costs', num: true, show: (g: Group) => (g.price ? money(g.price, currency.value) : '–'), by: (g: Group) => g.price ?? NaN },
    { key: 'total', label: 'all cost', num: true, show: (g: Group) => (g.total ? money(g.total, currency.value) : '–'), by: (g: Group) => g.total ?? NaN },
  ] : []),
  { key: 'launch', label: 'launches take', num: true, show: g => (g.launches ? span(seconds(g.launches.p50)) : '–'), by: g => seconds(g.launches?.p50), hint: 'half of the last launches' },
]

const short = (resource: string) => resource.replace(/^.*\//, '').replace('memory', 'mem')

/** GroupsPage is all node groups. */
export function GroupsPage() {
  const { data, error } = useAnswer<GroupList>('groups', {}, { every: 4000 })
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="loading">Loading…</p>
  const q = param('q').toLowerCase()
  const rows = data.items.filter(g => g.name.toLowerCase().includes(q))
  return (
    <Panel bare>
      <div class="body controls"><input type="search" placeholder="Filter by name" aria-label="Filter groups" value={param('q')} onInput={e => go({ q: e.currentTarget.value }, true)} />
        <span class="soft">{count(rows.length)} of {plural(data.items.length, 'node group')}</span></div>
      <p class="body legend"><span><i style={{ background: 'var(--good-fill)' }} />ready</span><span><i style={{ background: 'var(--bad-fill)' }} />not ready</span><span><i style={{ background: 'var(--warn-fill)' }} />leaving</span><span><i class="hatched" />launching</span><span><i class="tick" />minimum</span><span>colours end at the target, the bar at the maximum</span></p>
      {data.items.length === 0 ? <Empty title="There is no node group">Berth scales the cluster when it has a provider: --cloud-provider.</Empty>
        : <Table label="Node groups" columns={columns()} rows={rows} id={g => g.name} first="name" selected={param('g')} open={g => go({ g: g.name })} />}
    </Panel>
  )
}

/** GroupDrawer is one node group: its limits, its last order, and what it was chosen from. */
export function GroupDrawer() {
  const name = param('g')
  const { data: g, error } = useAnswer<GroupDetail>(name ? `groups/${encodeURIComponent(name)}` : undefined, {}, { every: 4000 })
  if (!name) return null
  return <Drawer title={name} close={() => go({ g: undefined })}>{error && <p class="bad">{error}</p>}{g ? <Detail of={g} /> : !error && <p class="loading">Loading…</p>}</Drawer>
}

function Detail({ of: g }: { of: GroupDetail }) {
  const t = clockNow.value, at = (x?: string) => clock(x, utc.value === 'true', t)
  const [text, tone] = groupState(g)
  return (
    <>
      <section>
        <p><Tag tone={tone}>{text}</Tag> <a href={href('nodes', { group: g.name })}>Show its nodes</a></p>
        <Span of={g} />
        <Pairs of={[
          ['nodes', `${count(g.target)} wanted: ${count(g.ready)} ready, ${count(g.launching)} launching, ${count(g.deleting)} leaving`],
          ['limits', `from ${count(g.min)} to ${count(g.max)}${g.limit ? `; ${g.limit}` : ''}`],
          ['room', g.room > 0 ? `${plural(g.room, 'node')} more${g.nextLimit ? `, until ${g.nextLimit.replace(/ reached$/, '')} is reached` : ''}` : ''],
          ['price', g.price ? `${money(g.price, currency.value)} a node${g.total ? `, ${money(g.total, currency.value)} for those that are there` : ''}` : ''],
          ['a node has', g.capacity?.map(c => `${c.resource} ${amount(c.resource, c.quantity)}`).join(', ')],
          ['back-off', g.backoff && `until ${at(g.backoff.until)}: ${g.backoff.reason} (${g.backoff.class})`],
          ['template', g.templateError && <span class="bad">{g.templateError}</span>],
          ['next node', expected(g.next, t)],
          ['launches', g.launches && `half within ${span(seconds(g.launches.p50))}, nine tenths within ${span(seconds(g.launches.p90))} (${plural(g.launches.launches, 'launch', 'launches')})`],
          ['at most', g.maxOrder ? `${count(g.maxOrder)} in an order` : ''],
          ['last failure', g.failed && `${at(g.failed.at)}: ${g.failed.why}`],
        ]} />
        {g.launchControl && g.launchControl.length > 0 && <ul class="items">{g.launchControl.map(l => <li class="soft">{l}</li>)}</ul>}
      </section>
      {g.ordered && <section><h3>Last order</h3><p>{at(g.ordered.at)} ({age(g.ordered.at, t)} ago): from {count(g.ordered.from)} to {count(g.ordered.to)} for {plural(g.ordered.pods, 'pod')}{g.ordered.failed && <span class="bad"> · {g.ordered.failed}</span>}</p>
        {g.ordered.choice && <Options of={g.ordered.choice} />}</section>}
      {g.instances && g.instances.length > 0 && <section><h3>Instances that aren’t nodes yet</h3><PlainTable caption="Instances" head={['instance', 'state', 'for']} rows={g.instances.map(i => [i.id, i.state, age(i.since, t)])} /></section>}
      <section><h3>Last decisions</h3><DecisionLines of={g.decisions} /></section>
      <section><h3>On a terminal</h3><Command line={`kubectl berth explain nodegroup ${g.name}`} /></section>
    </>
  )
}
