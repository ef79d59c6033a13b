import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { clockNow, overview, useAnswer, usePages } from '../api'
import { age, amount, count, plural } from '../format'
import { owner, podName, reasonOf, stateOf, stateOfMany } from '../names'
import { Age, Empty, Left, Panel, PlainTable, Segments, Tag } from '../parts/basics'
import { Table, type Column } from '../parts/table'
import { go, href, param } from '../route'
import type { Pending, Pod, PodDetail, PodList } from '../types'
import { Expected, expected } from './now'

type View = 'reasons' | 'pods'

/** PendingPage is what pods without a node wait for: by reason and workload, or pod by pod. */
export function PendingPage() {
  const view = (param('view') || 'reasons') as View
  return (
    <>
      <div class="controls"><Segments<View> label="View" of={[['reasons', 'By reason'], ['pods', 'Pod by pod']]} value={view} set={v => go({ view: v === 'reasons' ? undefined : v })} />
        <span class="soft">{overview.value && plural(overview.value.pods.pending, 'pod')} without a node</span></div>
      {view === 'reasons' ? <Reasons /> : <Pods />}
    </>
  )
}

function Reasons() {
  const { data, error } = useAnswer<Pending>('pending')
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="loading">Loading…</p>
  if (data.reasons.length === 0) return <Panel><Empty title="No pod is pending">Pods appear here as long as they have no node.</Empty></Panel>
  return <div class="cols reasons">{data.reasons.map(r => {
    const [text, tone] = stateOfMany(r.state, r.pods)
    return (
      <Panel title={<>{plural(r.pods, 'pod')} · <span class={tone}>{text}{r.state === 'NodeComing' && r.reason && `, ${reasonOf(r.state, r.reason)}`}</span></>} more={expected(r.next, clockNow.value)}>
        {r.reason && r.state !== 'NodeComing' && <p>{reasonOf(r.state, r.reason)} {r.plugin && <Tag>{r.plugin}</Tag>}</p>}
        <PlainTable class="workloads" caption={`${text} ${r.reason ?? ''}`} head={['workload', 'pods', 'waiting for', 'waits longest']} nums={[1, 2]}
          rows={r.workloads.map(w => [<>{w.namespace} / {owner(w.owner)}</>, count(w.pods), age(w.since, clockNow.value), <a href={href('pending', { pod: w.example })}>{w.example}</a>])} />
        {r.example && <WouldHelp pod={r.example} />}
        {(r.otherPods ?? 0) > 0 && <p class="soft">and {plural(r.otherPods!, 'pod')} of other workloads</p>}
        {(r.hidden ?? 0) > 0 && <p class="soft">and {plural(r.hidden!, 'pod')} of namespaces that you may not read</p>}
      </Panel>
    )
  })}</div>
}

/** WouldHelp asks what would help a pod that waits, once somebody wants to know. */
function WouldHelp({ pod }: { pod: string }) {
  const open = useSignal(false)
  return <details class="twin" onToggle={e => (open.value = e.currentTarget.open)}><summary>What would help {pod}</summary>{open.value && <Helps pod={pod} />}</details>
}

function Helps({ pod }: { pod: string }) {
  const { data, error } = useAnswer<PodDetail>(`pods/${pod}`, {}, { every: 10000 })
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="soft">Loading…</p>
  const said = [...(data.helps ?? []).map(h => h.text), data.scaling?.notPlanned, data.scaling?.weighed].filter(Boolean)
  return (
    <ul class="items">{said.map(text => <li><span class="what">{text}</span></li>)}
      <li><span class="what"><a href={href('pending', { pod })}>{said.length > 0 ? 'What nodes and node groups answer' : 'Nothing that is known; see what nodes and node groups answer'}</a></span></li></ul>
  )
}

export const podColumns: Column<Pod>[] = [
  { key: 'pod', label: 'pod', show: podName, by: podName, width: 'minmax(min(220px, 36vw), 2fr)', two: true },
  { key: 'state', label: 'state', show: p => { const [t, tone] = stateOf(p.state); return <Tag tone={tone}>{t}</Tag> }, by: p => p.state },
  { key: 'reason', label: 'reason', show: p => reasonOf(p.state, p.reason), by: p => p.reason ?? '', width: 'minmax(200px, 2fr)', two: true },
  { key: 'owner', label: 'workload', show: p => owner(p.owner), by: p => owner(p.owner), width: 'minmax(140px, 1fr)' },
  { key: 'since', label: 'waiting', num: true, show: p => <Age of={p.since} />, by: p => (p.since ? -Date.parse(p.since) : NaN) },
  { key: 'attempts', label: 'attempts', num: true, show: p => count(p.attempts ?? 0), by: p => p.attempts ?? 0 },
  { key: 'expected', label: 'node expected', show: p => (p.group ? <>{p.group} <Expected of={p.expected} /></> : ''), by: p => p.expected?.likely ?? '' },
  { key: 'cpu', label: 'cpu', num: true, show: p => amount('cpu', p.requests?.find(r => r.resource === 'cpu')?.quantity), by: p => Number(p.requests?.find(r => r.resource === 'cpu')?.quantity ?? 0) },
  { key: 'priority', label: 'priority', num: true, show: p => count(p.priority ?? 0), by: p => p.priority ?? 0 },
]

function Pods() {
  const { data, error } = usePages<Pod, PodList>('pods', p => p.namespace + '\0' + p.name, { state: 'pending' }, 5000)
  const q = param('q').toLowerCase()
  const items = data?.items
  const rows = useMemo(() => (q && items ? items.filter(p => (podName(p) + owner(p.owner) + (p.reason ?? '')).toLowerCase().includes(q)) : items ?? []), [items, q])
  if (error && !data) return <p class="bad">{error}</p>
  if (!data) return <p class="loading">Loading…</p>
  return (
    <Panel bare>
      <div class="body controls"><input type="search" placeholder="Filter by name, workload, reason" aria-label="Filter" value={param('q')} onInput={e => go({ q: e.currentTarget.value }, true)} />
        <span class="soft">{count(rows.length)} of {count(data.total)}{data.hidden ? `, ${count(data.hidden)} hidden` : ''}</span><Left of={data} /></div>
      <Table label="Pending pods" columns={podColumns} rows={rows} id={podName} first="-since" selected={param('pod')} open={p => go({ pod: podName(p) })} />
    </Panel>
  )
}
