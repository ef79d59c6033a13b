import { useMemo } from 'preact/hooks'
import { clockNow, useAnswer, usePages } from '../api'
import { age, clock, count, plural } from '../format'
import { groupOutcome } from '../names'
import { Age, Command, Empty, Left, Meter, Pairs, Panel, PlainTable, Tag } from '../parts/basics'
import { Drawer } from '../parts/drawer'
import { Table, type Column } from '../parts/table'
import { go, href, param } from '../route'
import { utc } from '../settings'
import type { PodGroup, PodGroupDetail, PodGroupList } from '../types'
import { DecisionLines, Rejections } from './pod'

const name = (g: PodGroup) => `${g.namespace}/${g.name}`

const all: Column<PodGroup>[] = [
  { key: 'name', label: 'pod group', show: name, by: name, width: 'minmax(min(170px, 36vw), 1fr)' },
  { key: 'policy', label: 'policy', show: g => g.policy ?? '', by: g => g.policy ?? '' },
  { key: 'share', label: 'placed', show: g => <Meter share={g.placed / Math.max(1, g.minCount ?? 0, g.placed + g.pending)} tone="good-fill" of={`${g.placed} of ${g.placed + g.pending} members${g.minCount ? `, at least ${g.minCount}` : ''}`} />, by: g => g.placed / Math.max(1, g.placed + g.pending), width: 'minmax(120px, .5fr)' },
  { key: 'placed', label: 'members', num: true, show: g => `${count(g.placed)} of ${count(g.placed + g.pending)}`, by: g => g.placed + g.pending },
  { key: 'min', label: 'at least', num: true, show: g => (g.minCount ? count(g.minCount) : ''), by: g => g.minCount ?? 0 },
  { key: 'topology', label: 'together in one', show: g => g.topology ?? '', by: g => g.topology ?? '' },
  { key: 'queue', label: 'queue', show: g => (g.queue ? `${g.queue}${g.attempts ? `, ${plural(g.attempts, 'attempt')}` : ''}` : ''), by: g => g.queue ?? '' },
  { key: 'age', label: 'age', num: true, show: g => <Age of={g.created} />, by: g => (g.created ? -Date.parse(g.created) : NaN) },
  { key: 'message', label: 'message', show: g => <span title={g.message}>{g.message?.replace(/^.*first placement status: /, '')}</span>, width: 'minmax(300px, 3fr)', two: true },
]

/** optional has the columns that are shown only when some pod group has a value there. */
const optional: Record<string, (g: PodGroup) => unknown> = { age: g => g.created, topology: g => g.topology, queue: g => g.queue }
const columns = (rows: PodGroup[]) => all.filter(c => !optional[c.key] || rows.some(optional[c.key]!))

/** PodGroupsPage is the pod groups, and how complete they are. */
export function PodGroupsPage() {
  const { data, error } = usePages<PodGroup, PodGroupList>('podgroups', g => g.namespace + '\0' + g.name, {}, 4000)
  const q = param('q').toLowerCase(), items = data?.items
  const rows = useMemo(() => (items ?? []).filter(g => !q || `${name(g)} ${g.message ?? ''}`.toLowerCase().includes(q)), [items, q])
  const cols = useMemo(() => columns(items ?? []), [items])
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="loading">Loading…</p>
  return (
    <Panel bare>
      <div class="body controls"><input type="search" placeholder="Filter by name or message" aria-label="Filter pod groups" value={param('q')} onInput={e => go({ q: e.currentTarget.value }, true)} />
        <span class="soft">{count(rows.length)} of {plural(data.total, 'pod group')}{data.hidden ? `, ${count(data.hidden)} hidden` : ''}</span><Left of={data} /></div>
      {data.items.length === 0 ? <Empty title="There is no pod group">Pods that are placed together appear here.</Empty>
        : <Table label="Pod groups" columns={cols} rows={rows} id={name} first="-placed" selected={param('pg')} open={g => go({ pg: name(g) })} />}
    </Panel>
  )
}

/** PodGroupDrawer is where a pod group stands: its members, the room that is kept for it, and why it waits. */
export function PodGroupDrawer() {
  const of = param('pg')
  const { data: g, error } = useAnswer<PodGroupDetail>(of ? `podgroups/${of}` : undefined, {}, { every: 4000 })
  if (!of) return null
  return <Drawer title={of} close={() => go({ pg: undefined })}>{error && <p class="bad">{error}</p>}{g ? <Detail of={g} /> : !error && <p class="loading">Loading…</p>}</Drawer>
}

function Detail({ of: g }: { of: PodGroupDetail }) {
  const t = clockNow.value, at = (x?: string) => clock(x, utc.value === 'true', t)
  const [text, tone] = groupOutcome(g.outcome)
  return (
    <>
      <section>
        <p><Tag tone={tone}>{text}</Tag> {g.message}</p>
        {!g.known && <p class="warn">There is no PodGroup of this name: members wait for one.</p>}
        <Pairs of={[
          ['policy', g.policy && `${g.policy}${g.minCount ? `, at least ${plural(g.minCount, 'member')}` : ''}`],
          ['members', `${count(g.placed)} placed, ${count(g.pending)} pending${g.gated ? ` (${count(g.gated)} gated)` : ''}`],
          ['would fit now', g.fitting ? plural(g.fitting, 'member') : ''],
          ['wait for others', g.permitting ? `${plural(g.permitting, 'member')}, until ${at(g.until)}` : ''],
          ['priority', g.priority], ['disruption', g.wholeDisruption && 'only all members together'],
          ['created', g.created && `${at(g.created)} (${age(g.created, t)} ago)`],
          ['queue', g.queue && `${g.queue}${g.attempts ? `, ${plural(g.attempts, 'attempt')}` : ''}${g.tried ? `, last tried ${at(g.tried)}` : ''}`],
          ['waits since', g.queued && `${at(g.queued)} (${age(g.queued, t)})`], ['next try', g.backoff && at(g.backoff)],
          ['condition', g.condition && `${g.condition.reason} since ${at(g.condition.since)}`],
        ]} />
      </section>
      <Levels of={g} />
      <Room of={g} at={at} />
      {g.why && g.why.length > 0 && <section><h3>Why members wait</h3><PlainTable caption="Why members wait" head={['members', 'such as', 'reason']} nums={[0]}
        rows={g.why.map(w => [count(w.members), <a href={href('pending', { pod: w.pod })}>{w.pod}</a>, w.message])} /></section>}
      {g.rejections && g.rejections.length > 0 && <section><h3>Why nodes reject the first member without one</h3><Rejections of={g.rejections} /></section>}
      {g.nodes && g.nodes.length > 0 && <section><h3>Nodes of its members</h3><PlainTable caption="Nodes of its members" head={['node', 'members']} nums={[1]}
        rows={g.nodes.map(n => [<a href={href('nodes', { node: n.node })}>{n.node}</a>, count(n.members)])} />
        {(g.allNodes ?? 0) > g.nodes.length && <p class="soft">and {plural(g.allNodes! - g.nodes.length, 'node')} more</p>}</section>}
      <section><h3>Last decisions</h3><DecisionLines of={g.decisions} /></section>
      <section><h3>On a terminal</h3><Command line={`kubectl berth explain podgroup ${g.name} -n ${g.namespace}`} /></section>
    </>
  )
}

/** Levels are the labels of which all members' nodes have one value, or have where that can be had. */
function Levels({ of: g }: { of: PodGroupDetail }) {
  const rows = [
    ...(g.topology ? [[<code>{g.topology}</code>, 'required', g.domains?.join(', ') || 'none chosen yet']] : []),
    ...(g.required ?? []).map(l => [<code>{l}</code>, 'required', '']),
    ...(g.preferred ?? []).map(l => [<code>{l}</code>, 'preferred', '']),
  ]
  return rows.length === 0 ? null
    : <section><h3>Members are together in one</h3><PlainTable caption="Members are together in one" head={['level', 'is', 'where they are']} rows={rows} /></section>
}

/** Room is what is kept for a group that has waited for long, or why nothing is. */
function Room({ of: g, at }: { of: PodGroupDetail; at: (t?: string) => string }) {
  if (!g.room) return g.roomMissing ? <section><h3>Room</h3><p>None is kept for it: {g.roomMissing}</p></section> : null
  const r = g.room
  return (
    <section><h3>Room that is kept for it</h3>
      <Pairs of={[
        ['for', plural(r.members, 'member')], ['since', at(r.since)],
        ['lent', r.until ? `to pods that end by ${at(r.until)}` : 'to no other pod'], ['released', `${at(r.ends)} at the latest`],
        ['on', <>{r.nodes.map((n, i) => <>{i > 0 && ', '}<a href={href('nodes', { node: n })}>{n}</a></>)}{r.allNodes > r.nodes.length && ` and ${plural(r.allNodes - r.nodes.length, 'node')} more`}</>],
      ]} />
    </section>
  )
}
